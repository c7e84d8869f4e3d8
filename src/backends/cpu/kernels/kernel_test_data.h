// What the kernel tests share: weights in file formats, memory that ends at a page nobody may touch, and layers ready to run.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/kernel_set.h"
#include "weights/half.h"
#include "weights/tensor.h"

namespace linnet::cpu {

inline constexpr DType kQuantizedTypes[] = {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0};
inline constexpr DType kDenseTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
inline constexpr DType kAllTypes[] = {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
                                      DType::kQ8_0, DType::kF32,  DType::kF16,  DType::kBF16};

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

inline std::size_t rounded_up(std::size_t size) { return (size + 63) / 64 * 64; }

// A matrix in its file's format. Scales are about 2^-7, some of them subnormal halves, some negative, some zero.
struct TestWeights {
  Tensor tensor;
  GuardedBytes bytes;

  TestWeights(DType dtype, std::int64_t rows, std::int64_t cols, std::uint32_t seed)
      : tensor{dtype, rows, cols, {}}, bytes(tensor_bytes(dtype, rows, cols).value()) {
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes.data()[i] = static_cast<std::byte>(random());
    const auto block = static_cast<std::size_t>(dtype_info(dtype).block_bytes);
    std::normal_distribution<float> normal(0.0F, 0.05F);
    for (std::size_t at = 0; at < bytes.size(); at += block) {
      if (dtype == DType::kF32) {
        const float value = normal(random);
        std::memcpy(bytes.data() + at, &value, 4);
      } else if (dtype == DType::kF16 || dtype == DType::kBF16) {
        const float value = normal(random);
        const std::uint16_t half =
            dtype == DType::kF16 ? float_to_half(value) : static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
        std::memcpy(bytes.data() + at, &half, 2);
      } else {
        put_scale(at, random);
        if (dtype == DType::kQ4_1 || dtype == DType::kQ5_1) put_scale(at + 2, random);
      }
    }
    tensor.data = {bytes.data(), bytes.size()};
  }

 private:
  void put_scale(std::size_t at, std::mt19937& random) {
    const std::uint32_t kind = random() % 16;
    float value = std::ldexp(1.0F + static_cast<float>(random() % 1024) / 1024.0F, -8);
    if (kind == 0) value = 0.0F;
    if (kind == 1) value = std::ldexp(static_cast<float>(random() % 1024), -24);
    const std::uint16_t half = float_to_half(kind == 2 ? -value : value);
    std::memcpy(bytes.data() + at, &half, 2);
  }
};

// A matrix repacked by a set of kernels, in guarded memory.
struct TestMatrix {
  PanelMatrix matrix;
  GuardedBytes bytes;

  TestMatrix(const KernelSet& kernels, const Tensor& source)
      : matrix(panel_matrix(source.dtype, source.rows, source.cols).value()), bytes(matrix.bytes()) {
    matrix.data = bytes.data();
    repack(kernels, source, matrix, {}, 0, panels_of(source.rows));
  }
  // Gate and up.
  TestMatrix(const KernelSet& kernels, const Tensor& gate, const Tensor& up)
      : matrix(panel_matrix_pairs(gate.dtype, gate.rows, gate.cols).value()), bytes(matrix.bytes()) {
    matrix.data = bytes.data();
    repack(kernels, gate, matrix, {0, 2}, 0, panels_of(gate.rows));
    repack(kernels, up, matrix, {1, 2}, 0, panels_of(up.rows));
  }
};

inline std::vector<float> random_rows(int rows, int cols, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols));
  for (float& value : x) value = normal(random) * (random() % 16 == 0 ? 4.0F : 1.0F);
  return x;
}

// Rounded rows of x and the memory they are in.
struct TestActivations {
  GuardedBytes bytes;
  Activations x;

  TestActivations(const KernelSet& kernels, ActivationForms forms, const float* data, int rows, int cols)
      : bytes(activations_bytes(rows, cols)), x(make_activations(kernels, forms, rows, cols, bytes.data())) {
    round_rows(kernels, {data, cols}, x, 0, rows);
  }
};

struct LinearCase {
  int rows = 1;
  int columns = 1;  // of y
  Epilogue epilogue = Epilogue::kStore;
  std::vector<int> cuts{};  // panel ranges end at these, besides the last
};

// y [rows, columns] of a matrix, in guarded memory; kAdd starts from 0.5.
inline std::vector<float> run_linear(const KernelSet& kernels, const PanelMatrix& matrix, const float* x, const LinearCase& c) {
  const TestActivations activations(kernels, activation_forms(matrix.format), x, c.rows, matrix.cols);
  const auto size = static_cast<std::size_t>(c.rows) * static_cast<std::size_t>(c.columns);
  const GuardedBytes y(size * sizeof(float));
  for (std::size_t i = 0; i < size; ++i) y.floats()[i] = 0.5F;
  const GuardedBytes scratch(rounded_up(linear_scratch_bytes()));
  std::vector<int> ends = c.cuts;
  ends.push_back(matrix.panels);
  int begin = 0;
  for (const int end : ends) {
    linear(kernels, matrix, activations.x, {y.floats(), c.columns, c.epilogue}, {begin, end, scratch.data()});
    begin = end;
  }
  return {y.floats(), y.floats() + size};
}

// Differing bits are printed as the first place where they differ.
inline testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << "sizes " << a.size() << " and " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) {
      return testing::AssertionFailure() << "at " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace linnet::cpu
