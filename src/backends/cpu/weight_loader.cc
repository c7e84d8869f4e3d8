#include "backends/cpu/weight_loader.h"

#include <algorithm>
#include <cstring>

#include "weights/dequantize.h"

namespace linnet::cpu {
namespace {

constexpr std::int32_t kPanelsAtOnce = 32;  // repacked by a thread before it asks for more
constexpr std::size_t kReadAhead = 4096;    // kernels prefetch and may read past the last matrix

}  // namespace

std::size_t WeightLoader::bytes() const { return carver_.size() + kReadAhead; }

void WeightLoader::take(PanelMatrix& matrix) { matrix.data = carver_.take<std::byte>(matrix.bytes()); }

void WeightLoader::note(const Tensor& source, const PanelMatrix& into, PanelPlace place) {
  if (counting_) return;
  const std::int32_t panels = panels_of(source.rows);
  for (std::int32_t begin = 0; begin < panels; begin += kPanelsAtOnce) {
    repacks_.push_back({source, into, place, {begin, std::min(begin + kPanelsAtOnce, panels)}});
  }
}

Result<Ops::Norm> WeightLoader::norm(const std::string& name, std::int64_t size) {
  LINNET_ASSIGN(const Tensor tensor, file_->require(name, 1, size));
  float* values = carver_.take<float>(static_cast<std::size_t>(size));
  if (values != nullptr) dequantize_row(tensor.dtype, tensor.data.data(), size, values);
  return static_cast<Ops::Norm>(values);
}

Result<PanelMatrix> WeightLoader::matrix(const std::string& name, std::int64_t rows, std::int64_t cols) {
  LINNET_ASSIGN(const Tensor tensor, file_->require(name, rows, cols));
  LINNET_ASSIGN(const PanelFormat format, panel_format(tensor));
  LINNET_ASSIGN(PanelMatrix matrix, panel_matrix(format, rows, cols));
  take(matrix);
  note(tensor, matrix, {});
  return matrix;
}

Result<Ops::Linear> WeightLoader::linear(const std::string& name, std::int64_t rows, std::int64_t cols) {
  LINNET_ASSIGN(const PanelMatrix made, matrix(name + ".weight", rows, cols));
  bytes_per_token_ += static_cast<double>(made.bytes());
  layer_weights_ += static_cast<double>(rows) * static_cast<double>(cols);
  return made;
}

Result<Ops::Linear> WeightLoader::head(const std::string& name, std::int64_t rows, std::int64_t cols) {
  LINNET_ASSIGN(const PanelMatrix made, matrix(name + ".weight", rows, cols));
  bytes_per_token_ += static_cast<double>(made.bytes());
  return made;
}

Result<Ops::Linears> WeightLoader::linears(std::initializer_list<Named> matrices, std::int64_t cols) {
  if (matrices.size() == 2 && matrices.begin()[0].rows == matrices.begin()[1].rows) {
    const std::int64_t rows = matrices.begin()[0].rows;
    LINNET_ASSIGN(const Tensor gate, file_->require(matrices.begin()[0].name + ".weight", rows, cols));
    LINNET_ASSIGN(const Tensor up, file_->require(matrices.begin()[1].name + ".weight", rows, cols));
    LINNET_ASSIGN(const PanelFormat gate_format, panel_format(gate));
    LINNET_ASSIGN(const PanelFormat up_format, panel_format(up));
    if (gate_format == up_format) return pair(gate, up, gate_format);
  }
  Ops::Linears made;
  for (const Named& named : matrices) {
    LINNET_ASSIGN(const PanelMatrix part, linear(named.name, named.rows, cols));
    made.parts.push_back(part);
  }
  return made;
}

Result<Ops::Linears> WeightLoader::pair(const Tensor& gate, const Tensor& up, PanelFormat format) {
  LINNET_ASSIGN(PanelMatrix both, panel_matrix_pairs(format, gate.rows, gate.cols));
  take(both);
  note(gate, both, {.first_panel = 0, .panel_step = 2});
  note(up, both, {.first_panel = 1, .panel_step = 2});
  bytes_per_token_ += static_cast<double>(both.bytes());
  layer_weights_ += 2.0 * static_cast<double>(gate.rows) * static_cast<double>(gate.cols);
  return Ops::Linears{.parts = {both}, .paired = true};
}

Result<Ops::Embedding> WeightLoader::embedding(const std::string& name, std::int64_t rows, std::int64_t cols) {
  return matrix(name, rows, cols);
}

void WeightLoader::run(Pool& pool) {
  WorkQueue queue;
  queue.reset(static_cast<std::int64_t>(repacks_.size()));
  pool.run([&](int, int) {
    for (std::int64_t i = 0, end = 0; queue.take(i, end);) {
      const Repack& job = repacks_[static_cast<std::size_t>(i)];
      repack(*kernels_, job.source, job.into, job.place, job.range);
    }
  });
  repacks_.clear();
}

}  // namespace linnet::cpu
