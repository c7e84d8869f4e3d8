// What the kernel tests share: repacked matrices, rounded rows, and layers ready to run.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "backends/cpu/kernels/guarded_bytes.h"
#include "backends/cpu/kernels/kernel_set.h"
#include "backends/cpu/kernels/kernel_test_weights.h"

namespace linnet::cpu {

inline std::size_t rounded_up(std::size_t size) { return (size + 63) / 64 * 64; }

// A matrix repacked by a set of kernels, in guarded memory.
struct TestMatrix {
  PanelMatrix matrix;
  GuardedBytes bytes;

  TestMatrix(const KernelSet& kernels, const Tensor& source)
      : matrix(panel_matrix(panel_format(source).value(), source.rows, source.cols).value()), bytes(matrix.bytes()) {
    matrix.data = bytes.data();
    repack(kernels, source, matrix, {}, {0, panels_of(source.rows)});
  }
  // Gate and up.
  TestMatrix(const KernelSet& kernels, const Tensor& gate, const Tensor& up)
      : matrix(panel_matrix_pairs(panel_format(gate).value(), gate.rows, gate.cols).value()), bytes(matrix.bytes()) {
    matrix.data = bytes.data();
    repack(kernels, gate, matrix, {0, 2}, {0, panels_of(gate.rows)});
    repack(kernels, up, matrix, {1, 2}, {0, panels_of(up.rows)});
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
  const TestActivations activations(kernels, activation_forms(matrix), x, c.rows, matrix.cols);
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
