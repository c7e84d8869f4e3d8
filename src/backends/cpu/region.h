// Memory reserved once, at load: KV blocks, scratch, repacked weights.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "linnet/status.h"

namespace linnet::cpu {

class Pool;

// Owns zeroed anonymous memory, aligned to 2 MiB, in huge pages where the system gives them. Move-only.
// Address space is taken at once; pages come when they are first touched.
class Region {
 public:
  Region() = default;
  // Error kTooLarge: the system refused. `purpose` names it in the message.
  static Result<Region> reserve(std::size_t bytes, const char* purpose);
  // What reserve() takes: whole pages.
  static std::size_t size_of(std::size_t bytes);
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  // Touches pages in ascending order on all threads of the pool, in many turns of it, until all are there or `limit` has passed;
  // returns the bytes touched. Contents stay. Two threads of a virtual Xeon: 3 to 5 GB/s, and 0.2 to 0.5 GB/s for pages that the
  // host has yet to find.
  std::size_t touch(Pool& pool, std::chrono::nanoseconds limit = std::chrono::hours(1)) const;

 private:
  Region(std::byte* data, std::size_t size, std::byte* mapping, std::size_t mapping_size)
      : data_(data), size_(size), mapping_(mapping), mapping_size_(mapping_size) {}
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::byte* mapping_ = nullptr;
  std::size_t mapping_size_ = 0;
};

// Cuts arrays out of a buffer, each aligned to a cache line. With a null base it only counts: size() is what they need.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}

  template <class T>
  T* take(std::size_t count) {
    T* array = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + size_);
    size_ += (count * sizeof(T) + 63) / 64 * 64;
    return array;
  }
  std::size_t size() const { return size_; }

 private:
  std::byte* base_;
  std::size_t size_ = 0;
};

}  // namespace linnet::cpu
