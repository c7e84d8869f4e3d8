#include "backends/cpu/weight_loader.h"

#include <algorithm>
#include <cstring>

#include "weights/dequantize.h"

namespace linnet::cpu {
namespace {

constexpr std::int32_t kPanelsAtOnce = 32;   // repacked by a thread before it asks for more
constexpr std::int32_t kRepacksPerTurn = 8;  // of each thread: about a millisecond, then others that share the pool have theirs
constexpr std::size_t kReadAhead = 4096;     // kernels prefetch and may read past the last matrix

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

Status WeightLoader::add_biases(std::initializer_list<Placed> layers, PanelMatrix& matrix) {
  const std::size_t count = static_cast<std::size_t>(matrix.panels) * kPanelRows;
  bool taken = false;
  for (const Placed& placed : layers) {
    LINNET_ASSIGN(const std::optional<Tensor> tensor, file_->optional(placed.layer.name + ".bias", 1, placed.layer.rows));
    if (!tensor) continue;
    if (!taken) matrix.bias = carver_.take<float>(count);
    if (!taken && !counting_) std::fill_n(matrix.bias, count, 0.0F);
    taken = true;
    if (counting_) continue;
    std::vector<float> values(static_cast<std::size_t>(placed.layer.rows));
    dequantize_row(tensor->dtype, tensor->data.data(), placed.layer.rows, values.data());
    for (std::size_t i = 0; i < values.size(); i += kPanelRows) {
      const std::size_t panel =
          static_cast<std::size_t>(placed.place.first_panel) + i / kPanelRows * static_cast<std::size_t>(placed.place.panel_step);
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i), std::min<std::size_t>(kPanelRows, values.size() - i),
                  matrix.bias + panel * kPanelRows);
    }
  }
  return {};
}

Result<PanelMatrix> WeightLoader::layer(const std::string& name, std::int64_t rows, std::int64_t cols) {
  LINNET_ASSIGN(PanelMatrix made, matrix(name + ".weight", rows, cols));
  LINNET_RETURN_IF_ERROR(add_biases({{{name, rows}, {}}}, made));
  bytes_per_token_ += static_cast<double>(made.bytes());
  return made;
}

Result<Ops::Linear> WeightLoader::linear(const std::string& name, std::int64_t rows, std::int64_t cols) {
  layer_weights_ += static_cast<double>(rows) * static_cast<double>(cols);
  return layer(name, rows, cols);
}

Result<Ops::Linear> WeightLoader::head(const std::string& name, std::int64_t rows, std::int64_t cols) {
  return layer(name, rows, cols);
}

Result<Ops::Linears> WeightLoader::linears(std::initializer_list<Named> matrices, std::int64_t cols) {
  if (matrices.size() == 2 && matrices.begin()[0].rows == matrices.begin()[1].rows) {
    LINNET_ASSIGN(const std::optional<PanelMatrix> both, pair(matrices.begin()[0], matrices.begin()[1], cols));
    if (both) return Ops::Linears{.parts = {*both}, .paired = true};
  }
  Ops::Linears made;
  for (const Named& named : matrices) {
    LINNET_ASSIGN(const PanelMatrix part, linear(named.name, named.rows, cols));
    made.parts.push_back(part);
  }
  return made;
}

Result<std::optional<PanelMatrix>> WeightLoader::pair(const Named& gate, const Named& up, std::int64_t cols) {
  LINNET_ASSIGN(const Tensor gate_weights, file_->require(gate.name + ".weight", gate.rows, cols));
  LINNET_ASSIGN(const Tensor up_weights, file_->require(up.name + ".weight", up.rows, cols));
  LINNET_ASSIGN(const PanelFormat format, panel_format(gate_weights));
  LINNET_ASSIGN(const PanelFormat up_format, panel_format(up_weights));
  if (format != up_format) return std::optional<PanelMatrix>();
  constexpr PanelPlace kGatePlace{.first_panel = 0, .panel_step = 2}, kUpPlace{.first_panel = 1, .panel_step = 2};
  LINNET_ASSIGN(PanelMatrix both, panel_matrix_pairs(format, gate.rows, cols));
  take(both);
  note(gate_weights, both, kGatePlace);
  note(up_weights, both, kUpPlace);
  LINNET_RETURN_IF_ERROR(add_biases({{gate, kGatePlace}, {up, kUpPlace}}, both));
  bytes_per_token_ += static_cast<double>(both.bytes());
  layer_weights_ += 2.0 * static_cast<double>(gate.rows) * static_cast<double>(cols);
  return std::optional<PanelMatrix>(both);
}

Result<Ops::Embedding> WeightLoader::embedding(const std::string& name, std::int64_t rows, std::int64_t cols) {
  return matrix(name, rows, cols);
}

void WeightLoader::run(Pool& pool) {
  const auto count = static_cast<std::int64_t>(repacks_.size());
  const std::int64_t turn = std::int64_t{kRepacksPerTurn} * pool.threads();
  for (std::int64_t begin = 0; begin < count; begin += turn) {
    pool.deal(std::min(turn, count - begin), [&](int, WorkQueue& pieces) {
      for (std::int64_t i = 0, end = 0; pieces.take(i, end);) {
        const Repack& part = repacks_[static_cast<std::size_t>(begin + i)];
        repack(*kernels_, part.source, part.into, part.place, part.range);
      }
    });
  }
  repacks_.clear();
}

}  // namespace linnet::cpu
