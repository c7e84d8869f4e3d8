#include "backends/cpu/ops.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace linnet::cpu {
namespace {

// Up to so many rows each thread rounds all of them for itself, which is cheaper than sharing them out and waiting for each
// other.
constexpr std::int32_t kOwnRowsMax = 4;

// A matrix is dealt out in pieces, so that a thread that is held up by something else does not hold up the others.
constexpr std::int32_t kPiecesPerThread = 3;
constexpr std::int32_t kPiecePanelsMin = 6;
constexpr std::size_t kMatricesAtOnceMax = 3;
constexpr std::int64_t kRowsAlone = 4;  // rows up to which sharing them out costs more than it saves

// work(share) for rows [0, rows), dealt out in multiples of `unit`.
template <class Work>
void deal_rows(Pool& pool, std::int64_t rows, std::int64_t unit, const Work& work) {
  const std::int64_t units = (rows + unit - 1) / unit;
  const std::int64_t pieces = rows <= kRowsAlone ? 1 : std::min<std::int64_t>(units, pool.threads() * kPiecesPerThread);
  pool.deal(pieces, [&](int, WorkQueue& queue) {
    for (std::int64_t i = 0, end = 0; queue.take(i, end);)
      work(share_of(rows, static_cast<int>(i), static_cast<int>(pieces), unit));
  });
}

}  // namespace

Result<Ops> Ops::create(const ModelConfig& config, const StepLimits& limits, const KernelSet& kernels, Pool& pool) {
  Ops ops(config, limits, kernels, pool.threads());
  ops.pool_ = &pool;
  LINNET_ASSIGN(ops.attention_, Attention::create(ops.attention_options(), ops.attention_kernels(), pool));
  LINNET_ASSIGN(ops.region_, Region::reserve(ops.lay_out(nullptr), "scratch"));
  ops.region_.touch(pool);
  ops.lay_out(ops.region_.data());
  ops.rows_.reserve(static_cast<std::size_t>(limits.rows_max));
  ops.sampled_.reserve(static_cast<std::size_t>(limits.samples_max));
  ops.ranges_.reserve(kMatricesAtOnceMax * static_cast<std::size_t>(pool.threads() * kPiecesPerThread));
  return ops;
}

Result<std::size_t> Ops::memory_bytes(const ModelConfig& config, const StepLimits& limits, const KernelSet& kernels,
                                      int threads) {
  Ops ops(config, limits, kernels, threads);
  LINNET_ASSIGN(const std::size_t attention, Attention::memory_bytes(ops.attention_options(), ops.attention_kernels(), threads));
  return attention + Region::size_of(ops.lay_out(nullptr));
}

AttentionOptions Ops::attention_options() const {
  return {.layout = {.layers = config_.layers, .kv_heads = config_.kv_heads, .head_dim = config_.head_dim},
          .heads = config_.heads,
          .rows_max = limits_.rows_max,
          .tokens_max = limits_.tokens_max,
          .context_max = limits_.context_max};
}

AttentionKernels Ops::attention_kernels() const {
  return {.attention = kernels_->attention(config_.head_dim), .kv_write = kernels_->kv_write};
}

std::size_t Ops::lay_out(std::byte* base) {
  Carver carver(base);
  const auto tokens = static_cast<std::size_t>(limits_.tokens_max);
  const auto samples = static_cast<std::size_t>(limits_.samples_max);
  const auto count = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const std::int64_t heads = std::int64_t{config_.heads} * config_.head_dim;
  const std::int64_t kv = std::int64_t{config_.kv_heads} * config_.head_dim;
  const std::int64_t widest = std::max({std::int64_t{config_.hidden}, std::int64_t{config_.intermediate}, heads});
  const std::int32_t rows = std::max(limits_.tokens_max, limits_.samples_max);
  x_ = carver.take<float>(tokens * count(config_.hidden));
  qkv_ = carver.take<float>(tokens * count(heads + 2 * kv));
  attended_ = carver.take<float>(tokens * count(heads));
  feed_forward_ = carver.take<float>(2 * tokens * count(config_.intermediate));
  sampled_x_ = carver.take<float>(samples * count(config_.hidden));
  logits_ = carver.take<float>(samples * count(config_.vocabulary));
  cos_ = carver.take<float>(tokens * rope_.frequencies.size());
  sin_ = carver.take<float>(tokens * rope_.frequencies.size());
  shared_activations_ = carver.take<std::byte>(activations_bytes(rows, widest));
  own_activations_.clear();
  linear_scratch_.clear();
  for (int thread = 0; thread < threads_; ++thread) {
    own_activations_.push_back(carver.take<std::byte>(activations_bytes(kOwnRowsMax, widest)));
    linear_scratch_.push_back(carver.take<std::byte>(linear_scratch_bytes()));
  }
  return carver.size();
}

void Ops::begin(const StepPlan& plan, std::span<std::byte* const> blocks) {
  plan_ = &plan;
  tokens_ = static_cast<std::int32_t>(plan.tokens.size());
  CHECK(tokens_ <= limits_.tokens_max && plan.rows.size() <= static_cast<std::size_t>(limits_.rows_max));
  rows_.clear();
  sampled_.clear();
  for (const RowPlan& row : plan.rows) {
    rows_.push_back(
        {.position = row.position, .count = row.input_count, .token_begin = row.input_begin, .blocks = plan.block_table(row)});
    for (std::int32_t i = row.input_count - row.samples; i < row.input_count; ++i) sampled_.push_back(row.input_begin + i);
  }
  CHECK(sampled_.size() <= static_cast<std::size_t>(limits_.samples_max));
  attention_.plan(rows_, blocks);
}

Ops::Tensor Ops::embed(const Embedding& embedding) {
  const auto half = static_cast<std::int64_t>(rope_.frequencies.size());
  deal_rows(*pool_, tokens_, 1, [&](const Share& share) {
    for (const AttentionRow& row : rows_) {
      const std::int64_t first = std::max<std::int64_t>(share.begin, row.token_begin);
      const std::int64_t last = std::min<std::int64_t>(share.end, row.token_begin + row.count);
      for (std::int64_t t = first; t < last; ++t) {
        dequantize_row(embedding, static_cast<int>(plan_->tokens[static_cast<std::size_t>(t)]), x_ + t * config_.hidden);
        rope_angles(rope_, row.position + t - row.token_begin, cos_ + t * half, sin_ + t * half);
      }
    }
  });
  return view(x_, tokens_, config_.hidden);
}

Ops::Tensor Ops::rms_norm(Tensor x, Norm weight, float eps) const {
  x.norm = weight;
  x.norm_eps = eps;
  return x;
}

Ops::Tensor Ops::rope(Tensor x, std::int32_t heads) const {
  x.rope_heads = heads;
  return x;
}

void Ops::round(const Tensor& x, const Activations& into, int begin, int end) const {
  const RowsIn rows{.data = x.data, .stride = x.stride};
  if (x.norm != nullptr) {
    rms_norm_round(*kernels_, rows, x.norm, x.norm_eps, into, begin, end);
  } else {
    round_rows(*kernels_, rows, into, begin, end);
  }
}

void Ops::apply(const Tensor& x, std::span<const PanelMatrix> weights, std::span<const LinearOutput> outs) {
  if (x.rows == 0) return;
  ActivationForms forms;
  for (const PanelMatrix& matrix : weights) forms = forms | activation_forms(matrix);
  const bool own = x.rows <= kOwnRowsMax;
  if (!own) {
    deal_rows(*pool_, x.rows, kTileRowsMax, [&](const Share& share) {
      const Activations rounded = make_activations(*kernels_, forms, x.rows, x.cols, shared_activations_);
      round(x, rounded, static_cast<int>(share.begin), static_cast<int>(share.end));
    });
  }
  deal_out(weights);
  pool_->deal(static_cast<std::int64_t>(ranges_.size()), [&](int thread, WorkQueue& pieces) {
    std::int64_t i = 0;
    std::int64_t end = 0;
    if (!pieces.take(i, end)) return;
    std::byte* memory = own ? own_activations_[static_cast<std::size_t>(thread)] : shared_activations_;
    const Activations rounded = make_activations(*kernels_, forms, x.rows, x.cols, memory);
    if (own) round(x, rounded, 0, x.rows);
    std::byte* scratch = linear_scratch_[static_cast<std::size_t>(thread)];
    do {
      const PanelRange& range = ranges_[static_cast<std::size_t>(i)];
      cpu::linear(*kernels_, weights[range.matrix], rounded, outs[range.matrix], {range.begin, range.end, scratch});
    } while (pieces.take(i, end));
  });
}

void Ops::deal_out(std::span<const PanelMatrix> weights) {
  ranges_.clear();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::int32_t panels = weights[i].panels;
    const std::int32_t pieces =
        std::min(pool_->threads() == 1 ? 1 : pool_->threads() * kPiecesPerThread, std::max(panels / kPiecePanelsMin, 1));
    for (std::int32_t piece = 0; piece < pieces; ++piece) {
      const Share share = share_of(panels, piece, pieces, 2);
      if (share.begin < share.end)
        ranges_.push_back({i, static_cast<std::int32_t>(share.begin), static_cast<std::int32_t>(share.end)});
    }
  }
}

std::tuple<Ops::Tensor, Ops::Tensor, Ops::Tensor> Ops::linears3(const Tensor& x, const Linears& weights) {
  CHECK(weights.parts.size() == 3);
  const std::int64_t stride = weights.parts[0].rows + weights.parts[1].rows + weights.parts[2].rows;
  std::array<LinearOutput, 3> outs;
  std::array<Tensor, 3> tensors;
  float* at = qkv_;
  for (std::size_t i = 0; i < 3; ++i) {
    outs[i] = {.y = at, .stride = stride, .epilogue = Epilogue::kStore};
    tensors[i] = {.data = at,
                  .stride = stride,
                  .rows = x.rows,
                  .cols = weights.parts[i].rows,
                  .norm = nullptr,
                  .norm_eps = 0,
                  .rope_heads = 0};
    at += weights.parts[i].rows;
  }
  apply(x, weights.parts, outs);
  return {tensors[0], tensors[1], tensors[2]};
}

void Ops::rotate(const Tensor& x, int begin, int end) const {
  if (x.rope_heads == 0) return;
  cpu::rope(*kernels_,
            {.x = x.data,
             .stride = x.stride,
             .heads = x.rope_heads,
             .head_dim = config_.head_dim,
             .dims = static_cast<std::int32_t>(2 * rope_.frequencies.size()),
             .interleaved = config_.rope.interleaved,
             .cos = cos_,
             .sin = sin_},
            begin, end);
}

Ops::Tensor Ops::attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionCall& call) {
  attention_.write(*pool_, call.layer, {.data = k.data, .stride = k.stride}, {.data = v.data, .stride = v.stride},
                   [&](int begin, int end) {
                     rotate(q, begin, end);
                     rotate(k, begin, end);
                   });
  attention_.run(*pool_, call, {.data = q.data, .stride = q.stride}, {.data = attended_, .stride = q.cols});
  return view(attended_, q.rows, q.cols);
}

Ops::Tensor Ops::add_linear(const Tensor& x, const Tensor& input, const Linear& weights) {
  const LinearOutput out{.y = x.data, .stride = x.stride, .epilogue = Epilogue::kAdd};
  apply(input, {&weights, 1}, {&out, 1});
  return x;
}

Ops::Tensor Ops::swiglu(const Tensor& x, const Linears& gate_up) {
  if (gate_up.paired) {
    const LinearOutput out{.y = feed_forward_, .stride = config_.intermediate, .epilogue = Epilogue::kSwiglu};
    apply(x, gate_up.parts, {&out, 1});
    return view(feed_forward_, x.rows, config_.intermediate);
  }
  const std::int64_t width = config_.intermediate;
  float* up = feed_forward_ + std::int64_t{limits_.tokens_max} * width;
  const std::array<LinearOutput, 2> outs{LinearOutput{.y = feed_forward_, .stride = width, .epilogue = Epilogue::kStore},
                                         LinearOutput{.y = up, .stride = width, .epilogue = Epilogue::kStore}};
  apply(x, gate_up.parts, outs);
  deal_rows(*pool_, x.rows, 1, [&](const Share& rows) {
    const std::int64_t begin = rows.begin * width;
    cpu::swiglu(*kernels_, feed_forward_ + begin, up + begin, feed_forward_ + begin, (rows.end - rows.begin) * width);
  });
  return view(feed_forward_, x.rows, config_.intermediate);
}

Ops::Tensor Ops::sampled(const Tensor& x) {
  for (std::size_t i = 0; i < sampled_.size(); ++i) {
    std::memcpy(sampled_x_ + static_cast<std::int64_t>(i) * x.cols, x.data + sampled_[i] * x.stride,
                static_cast<std::size_t>(x.cols) * sizeof(float));
  }
  return view(sampled_x_, static_cast<std::int32_t>(sampled_.size()), x.cols);
}

Ops::Tensor Ops::linear(const Tensor& x, const Linear& weights) {
  const LinearOutput out{.y = logits_, .stride = weights.rows, .epilogue = Epilogue::kStore};
  apply(x, {&weights, 1}, {&out, 1});
  return view(logits_, x.rows, weights.rows);
}

}  // namespace linnet::cpu
