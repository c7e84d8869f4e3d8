// Memory that ends at a page nobody may touch.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <utility>

namespace linnet::cpu {

// `size` bytes whose end is the end of what may be touched; aligned to 64 if size is. Filled with 0xff: NaN in every float
// format.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::size_t size) : size_(size) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t usable = (size + page - 1) / page * page;
    mapping_size_ = usable + page;
    void* const memory = ::mmap(nullptr, mapping_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    mapping_ = static_cast<std::byte*>(memory);
    EXPECT_EQ(::mprotect(mapping_ + usable, page, PROT_NONE), 0);
    data_ = mapping_ + (usable - size);
    std::memset(mapping_, 0xff, usable);
  }
  GuardedBytes(GuardedBytes&& other) noexcept
      : mapping_(std::exchange(other.mapping_, nullptr)),
        mapping_size_(other.mapping_size_),
        data_(other.data_),
        size_(other.size_) {}
  GuardedBytes& operator=(GuardedBytes&& other) = delete;
  ~GuardedBytes() {
    if (mapping_ != nullptr) ::munmap(mapping_, mapping_size_);
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  float* floats() const { return reinterpret_cast<float*>(data_); }

 private:
  std::byte* mapping_ = nullptr;
  std::size_t mapping_size_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace linnet::cpu
