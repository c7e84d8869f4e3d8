// A value of a GGUF file's metadata: a view of the file, decoded as it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "linnet/status.h"

namespace linnet {

// Numbered as in the files.
enum class GgufType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

std::string_view gguf_type_name(GgufType type);  // "u8", "string", ...
bool gguf_type_known(std::uint32_t type);
// Bytes of one value; 0 for strings and arrays, which have no fixed size.
std::size_t gguf_type_bytes(GgufType type);

// An array of integers of any width, all of which fit an int64.
class GgufInts {
 public:
  GgufInts() = default;
  GgufInts(GgufType type, std::span<const std::byte> data) : type_(type), data_(data) {}
  std::size_t size() const { return data_.size() / gguf_type_bytes(type_); }
  std::int64_t operator[](std::size_t i) const;

 private:
  GgufType type_ = GgufType::kUint8;
  std::span<const std::byte> data_;
};

// An array of float32 or float64.
class GgufFloats {
 public:
  GgufFloats() = default;
  GgufFloats(GgufType type, std::span<const std::byte> data) : type_(type), data_(data) {}
  std::size_t size() const { return data_.size() / gguf_type_bytes(type_); }
  double operator[](std::size_t i) const;

 private:
  GgufType type_ = GgufType::kFloat32;
  std::span<const std::byte> data_;
};

// An array of strings, read from front to back: for (std::string_view s : strings).
class GgufStrings {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;

    Iterator() = default;
    explicit Iterator(const std::byte* at) : at_(at) {}
    std::string_view operator*() const { return {reinterpret_cast<const char*>(at_) + 8, bytes()}; }
    Iterator& operator++() {
      at_ += 8 + bytes();
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    std::size_t bytes() const {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, at_, 8);
      return static_cast<std::size_t>(bytes);
    }
    const std::byte* at_ = nullptr;
  };

  GgufStrings() = default;
  // `data`: `size` times a length of 8 bytes and as many bytes, checked.
  GgufStrings(std::span<const std::byte> data, std::size_t size) : data_(data), size_(size) {}
  std::size_t size() const { return size_; }
  Iterator begin() const { return Iterator(data_.data()); }
  Iterator end() const { return Iterator(data_.data() + data_.size()); }

 private:
  std::span<const std::byte> data_;
  std::size_t size_ = 0;
};

// Made by GgufFile, which has checked that everything lies inside the file; valid as long as it. Each accessor's error (kCorrupt)
// names the file, the key, what was found and what was wanted.
class GgufValue {
 public:
  // `data`: the value itself, for a string without its length; for an array its elements.
  struct Parts {
    std::string_view key;
    GgufType type{};
    GgufType element_type{};  // of an array
    std::size_t size = 1;     // elements of an array
    std::span<const std::byte> data{};
  };
  // `path`: the file's name; outlives the value.
  GgufValue(const Parts& parts, const std::string* path) : parts_(parts), path_(path) {}

  std::string_view key() const { return parts_.key; }
  GgufType type() const { return parts_.type; }
  bool is_array() const { return parts_.type == GgufType::kArray; }
  GgufType element_type() const { return parts_.element_type; }
  std::size_t size() const { return parts_.size; }
  std::string type_text() const;  // "u32", "array of string"

  Result<std::int64_t> as_int() const;         // any integer type; u64 above 2^63 - 1 is an error
  Result<double> as_float() const;             // f32, f64, or an integer
  Result<bool> as_bool() const;                // bool; other bytes than 0 and 1 are an error
  Result<std::string_view> as_string() const;  // bytes as the file has them
  Result<GgufInts> as_ints() const;            // arrays of any integer type
  Result<GgufFloats> as_floats() const;        // arrays of f32 or f64
  Result<GgufStrings> as_strings() const;

  // "file: key 'k' " + what; for callers who check more.
  Error error(ErrorCode code, std::string_view what) const;

 private:
  Error mismatch(std::string_view wanted) const;

  Parts parts_;
  const std::string* path_;
};

}  // namespace linnet
