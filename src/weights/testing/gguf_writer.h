// Writes GGUF files for tests, right ones and wrong ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/gguf_value.h"
#include "weights/tensor.h"

namespace linnet::testing {

// Builds the bytes of a file. Nothing is checked: what is added is written. Keys and tensors come in the order of their addition.
class GgufWriter {
 public:
  // `alignment`: of the tensors' data; written as general.alignment if it is not the format's default.
  explicit GgufWriter(std::uint32_t version = 3, std::uint32_t alignment = kDefaultAlignment);

  static constexpr std::uint32_t kDefaultAlignment = 32;

  void add_u8(std::string_view key, std::uint8_t value) { add_number(key, GgufType::kUint8, value); }
  void add_i32(std::string_view key, std::int32_t value) { add_number(key, GgufType::kInt32, value); }
  void add_u32(std::string_view key, std::uint32_t value) { add_number(key, GgufType::kUint32, value); }
  void add_u64(std::string_view key, std::uint64_t value) { add_number(key, GgufType::kUint64, value); }
  void add_f32(std::string_view key, float value) { add_number(key, GgufType::kFloat32, value); }
  void add_bool(std::string_view key, bool value) { add_number(key, GgufType::kBool, static_cast<std::uint8_t>(value)); }
  void add_string(std::string_view key, std::string_view value);
  void add_strings(std::string_view key, std::span<const std::string> values);
  // `T` as wide as `type`.
  template <class T>
  void add_number(std::string_view key, GgufType type, T value) {
    add_raw(key, static_cast<std::uint32_t>(type), std::as_bytes(std::span(&value, 1)));
  }
  // `values`: a contiguous range of them.
  template <class Values>
  void add_numbers(std::string_view key, GgufType type, const Values& values) {
    const std::span span(values);
    add_array(key, static_cast<std::uint32_t>(type), span.size(), std::as_bytes(span));
  }
  // `bytes`: all that follows the element count.
  void add_array(std::string_view key, std::uint32_t element_type, std::uint64_t count, std::span<const std::byte> bytes);
  // `bytes`: all that follows the type.
  void add_raw(std::string_view key, std::uint32_t type, std::span<const std::byte> bytes);

  // `dims` innermost first. Data follow the earlier tensors', aligned.
  void add_tensor(std::string_view name, std::span<const std::int64_t> dims, DType dtype, std::span<const std::byte> data);
  // As add_tensor(), with any format and, if given, any offset; `data` are appended all the same.
  struct RawTensor {
    std::string_view name;
    std::vector<std::uint64_t> dims;
    std::uint32_t gguf_type = 0;
    std::span<const std::byte> data{};
    std::optional<std::uint64_t> offset{};
  };
  void add_raw_tensor(const RawTensor& tensor);

  std::vector<std::byte> bytes() const;

 private:
  std::uint32_t version_;
  std::uint32_t alignment_;
  std::uint64_t keys_ = 0;
  std::uint64_t tensors_ = 0;
  std::vector<std::byte> metadata_;
  std::vector<std::byte> infos_;
  std::vector<std::byte> data_;
};

// A file in the system's folder for temporary files; removed with this object. Move-only.
class TempFile {
 public:
  explicit TempFile(std::span<const std::byte> bytes, std::string_view suffix = ".gguf");
  TempFile(TempFile&& other) noexcept;
  TempFile& operator=(TempFile&& other) noexcept;
  ~TempFile();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace linnet::testing
