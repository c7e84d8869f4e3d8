// The CPU's words for model files: each calls kernels on all threads of the pool at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/kernels/kernel_set.h"
#include "backends/cpu/kv_blocks.h"
#include "backends/cpu/pool.h"
#include "backends/cpu/region.h"
#include "base/ids.h"
#include "linnet/status.h"
#include "model/config.h"
#include "model/rope.h"
#include "sched/step_plan.h"

namespace linnet::cpu {

// The most that one step may ask for; scratch is sized by it at load.
struct StepLimits {
  std::int32_t rows_max = 0;
  std::int32_t tokens_max = 0;   // inputs of all rows
  std::int32_t samples_max = 0;  // sampled inputs of all rows
  std::int32_t context_max = 0;  // tokens of a sequence
};

// Scratch and state of the step under way. Belongs to one executor; used from the engine's thread, kernel thread 0.
// Invariants: 1. Nothing allocates after create(). 2. A tensor is a view of scratch: it holds until the same word makes the next
// one of its kind. 3. The bits of a token's row depend on its own history alone.
class Ops {
 public:
  // A view of f32 rows. `norm`: to be multiplied by 1 / rms and these weights when it is read (rounding and norm are one pass).
  // `roped`: to be rotated when attention reads it.
  struct Tensor {
    float* data = nullptr;
    std::int64_t stride = 0;
    std::int32_t rows = 0;
    std::int32_t cols = 0;
    const float* norm = nullptr;
    float norm_eps = 0;
    std::int32_t rope_heads = 0;
  };
  using Norm = const float*;
  using Linear = PanelMatrix;
  using Embedding = PanelMatrix;
  struct Linears {
    std::vector<PanelMatrix> parts;  // as asked for, or one matrix of pairs where `paired`
    bool paired = false;
  };

  static Result<Ops> create(const ModelConfig& config, const StepLimits& limits, const KernelSet& kernels, Pool& pool);
  // What create() would reserve. Error: kUnsupported (head size).
  static Result<std::size_t> memory_bytes(const ModelConfig& config, const StepLimits& limits, const KernelSet& kernels,
                                          int threads);
  std::size_t reserved_bytes() const { return region_.size() + attention_.reserved_bytes(); }

  // Takes the step; `plan` and `blocks` live until its end.
  void begin(const StepPlan& plan, std::span<std::byte* const> blocks);

  Tensor embed(const Embedding& embedding);                                                        // [T, hidden]
  Tensor rms_norm(Tensor x, Norm weight, float eps) const;                                         // as x
  std::tuple<Tensor, Tensor, Tensor> linears3(const Tensor& x, const Linears& weights);            // [T, rows of each]
  Tensor rope(Tensor x, std::int32_t heads) const;                                                 // as x
  Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionCall& call);  // as q
  Tensor add_linear(const Tensor& x, const Tensor& input, const Linear& weights);                  // x, with W input added
  Tensor swiglu(const Tensor& x, const Linears& gate_up);                                          // [T, intermediate]
  Tensor sampled(const Tensor& x);                                                                 // [S, hidden]
  Tensor linear(const Tensor& x, const Linear& weights);                                           // [S, rows]

  // A key or value of this row of the plan was not finite.
  bool row_failed(std::int32_t row) const { return attention_.row_failed(row); }

 private:
  struct PanelRange {
    std::size_t matrix = 0;
    std::int32_t begin = 0;
    std::int32_t end = 0;
  };

  Ops(const ModelConfig& config, const StepLimits& limits, const KernelSet& kernels, int threads)
      : config_(config),
        rope_(rope_table(config.rope, config.head_dim)),
        limits_(limits),
        kernels_(&kernels),
        threads_(threads) {}
  AttentionOptions attention_options() const;
  AttentionKernels attention_kernels() const;
  // Points the scratch at `base`; its size. Null: only counts.
  std::size_t lay_out(std::byte* base);
  // All matrices read x: outs[i] = weights[i] x, or what outs[i].epilogue says.
  void apply(const Tensor& x, std::span<const PanelMatrix> weights, std::span<const LinearOutput> outs);
  // Cuts the matrices' panels into ranges_.
  void deal_out(std::span<const PanelMatrix> weights);
  void round(const Tensor& x, const Activations& into, int begin, int end) const;
  void rotate(const Tensor& x, int begin, int end) const;
  Tensor view(float* data, std::int32_t rows, std::int32_t cols) const { return {data, cols, rows, cols, nullptr, 0, 0}; }

  ModelConfig config_;
  RopeTable rope_;
  StepLimits limits_;
  const KernelSet* kernels_;
  Attention attention_;
  int threads_;
  Pool* pool_ = nullptr;
  Region region_;

  const StepPlan* plan_ = nullptr;
  std::vector<AttentionRow> rows_;
  std::vector<std::int32_t> sampled_;  // inputs of the step whose logits are wanted
  std::int32_t tokens_ = 0;
  std::vector<PanelRange> ranges_;

  // Scratch, in f32 unless said otherwise: [tokens_max, ...].
  float* x_ = nullptr;  // residual stream
  float* qkv_ = nullptr;
  float* attended_ = nullptr;
  float* feed_forward_ = nullptr;  // gate (then the product), up
  float* sampled_x_ = nullptr;     // [samples_max, hidden]
  float* logits_ = nullptr;        // [samples_max, vocabulary]
  float* cos_ = nullptr;           // [tokens_max, rope pairs]
  float* sin_ = nullptr;
  std::byte* shared_activations_ = nullptr;
  std::vector<std::byte*> own_activations_;  // [threads]
  std::vector<std::byte*> linear_scratch_;   // [threads]
};

}  // namespace linnet::cpu
