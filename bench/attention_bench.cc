// Attention and KV writes of one layer, in the shapes of a step: prefill in chunks, decode, verify windows, a batch.
//   attention_bench [ISA] [THREADS] [HEADS KV_HEADS HEAD_DIM]      (amx 1 9 3 64)
// Prints the median of 9 (least, most). KV is walked through as a model with many layers would: a layer's is not in L2 when it
// comes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/kernels/kernel_set.h"
#include "timing.h"

namespace linnet::cpu {
namespace {

struct Machine {
  std::string isa = "amx";
  int threads = 1;
  std::int32_t heads = 9;
  std::int32_t kv_heads = 3;
  std::int32_t head_dim = 64;
};

class Bench {
 public:
  static constexpr std::int32_t kContext = 8192;
  static constexpr std::int32_t kTokens = 512;
  static constexpr std::int32_t kRows = 32;

  Bench(const Machine& machine, const AttentionKernels& kernels)
      : machine_(machine),
        pool_({.threads = machine.threads}),
        width_(std::int64_t{machine.heads} * machine.head_dim),
        kv_width_(std::int64_t{machine.kv_heads} * machine.head_dim) {
    // Enough layers that one sequence of 4,096 tokens takes 64 MB or more.
    KvLayout layout{.layers = 1, .kv_heads = machine.kv_heads, .head_dim = machine.head_dim};
    layout.layers = std::max(1, static_cast<std::int32_t>((std::size_t{64} << 20) / (layout.token_bytes() * 4096)));
    kv_ = std::move(KvPool::create(layout, 2 * kContext / kBlockTokens)).value();
    attention_ = std::make_unique<Attention>(
        std::move(
            Attention::create(
                {.layout = layout, .heads = machine.heads, .rows_max = kRows, .tokens_max = kTokens, .context_max = kContext},
                kernels, pool_))
            .value());
    std::mt19937 rng(2);
    std::normal_distribution<float> normal;
    q_.resize(static_cast<std::size_t>(kTokens * width_));
    k_.resize(static_cast<std::size_t>(kTokens * kv_width_));
    v_.resize(k_.size());
    out_.resize(q_.size());
    for (auto* values : {&q_, &k_, &v_}) {
      for (float& x : *values) x = normal(rng);
    }
    for (std::uint32_t b = 0; b < 2 * kContext / kBlockTokens; ++b) table_.push_back(BlockId{b});
    std::shuffle(table_.begin(), table_.end(), rng);
    for (std::int32_t p = 0; p < 2 * kContext; p += kTokens) {
      plan({{.position = p % kContext, .count = kTokens, .token_begin = 0, .blocks = blocks_of(p / kContext)}});
      for (std::int32_t layer = 0; layer < layout.layers; ++layer) write(layer);
    }
  }

  std::int32_t layers() const { return kv_.layout().layers; }
  double kv_bytes(double tokens) const { return static_cast<double>(kv_.layout().token_bytes()) / layers() * tokens; }
  std::span<const BlockId> blocks_of(std::int32_t half) const {
    return std::span(table_).subspan(static_cast<std::size_t>(half * kContext / kBlockTokens), kContext / kBlockTokens);
  }

  void plan(const std::vector<AttentionRow>& rows) { attention_->plan(rows, kv_.blocks()); }
  void write(std::int32_t layer) {
    attention_->write(pool_, layer, {k_.data(), kv_width_}, {v_.data(), kv_width_}, [](int, int) {});
  }
  void run(std::int32_t layer) { attention_->run(pool_, {.layer = layer}, {q_.data(), width_}, {out_.data(), width_}); }

  void prefill(std::int32_t tokens) {
    const Times t = timed([&] {
      pool_.begin_step();
      for (std::int32_t p = 0; p < tokens; p += kTokens) {
        plan({{.position = p, .count = kTokens, .token_begin = 0, .blocks = blocks_of(0)}});
        run(0);
      }
      pool_.end_step();
    });
    const double flop = 2.0 * tokens * (tokens + 1.0) * machine_.head_dim * machine_.heads;
    std::printf("prefill %d: %.2f ms a layer (%.2f .. %.2f), %.3f TFLOP/s\n", tokens, t.median * 1e3, t.least * 1e3, t.most * 1e3,
                flop / t.median / 1e12);
  }

  void chunk_write() {
    plan({{.position = 0, .count = kTokens, .token_begin = 0, .blocks = blocks_of(0)}});
    const Times t = timed([&] {
      pool_.begin_step();
      for (std::int32_t layer = 0; layer < layers(); ++layer) write(layer);
      pool_.end_step();
    });
    std::printf("write %d tokens: %.1f us a layer (%.1f .. %.1f)\n", kTokens, t.median * 1e6 / layers(), t.least * 1e6 / layers(),
                t.most * 1e6 / layers());
  }

  // One step of rows over all layers.
  void rows(const char* what, const std::vector<AttentionRow>& rows) {
    double keys = 0;
    for (const AttentionRow& row : rows) keys += row.position + row.count;
    plan(rows);
    const Times t = timed([&] {
      pool_.begin_step();
      for (std::int32_t layer = 0; layer < layers(); ++layer) {
        write(layer);
        run(layer);
      }
      pool_.end_step();
    });
    std::printf("%s: %.1f us a layer (%.1f .. %.1f), %.1f GB/s\n", what, t.median * 1e6 / layers(), t.least * 1e6 / layers(),
                t.most * 1e6 / layers(), kv_bytes(keys) * layers() / t.median / 1e9);
  }

  void all() {
    for (const std::int32_t n : {512, 4096}) prefill(n);
    chunk_write();
    for (const std::int32_t n : {64, 512, 4096, 8192}) {
      rows(("decode at " + std::to_string(n)).c_str(),
           {{.position = n - 1, .count = 1, .token_begin = 0, .blocks = blocks_of(0)}});
    }
    rows("verify 4 at 4096", {{.position = 4092, .count = 4, .token_begin = 0, .blocks = blocks_of(0)}});
    rows("verify 8 at 4096", {{.position = 4088, .count = 8, .token_begin = 0, .blocks = blocks_of(0)}});
    std::vector<AttentionRow> batch;
    for (std::int32_t i = 0; i < 8; ++i)
      batch.push_back({.position = 100 + 57 * i,
                       .count = 1,
                       .token_begin = i,
                       .blocks = blocks_of(0).subspan(static_cast<std::size_t>(i * 32), 32)});
    rows("8 rows of decode at 100-500", batch);
    batch.push_back({.position = 4096, .count = 256, .token_begin = 8, .blocks = blocks_of(1)});
    rows("the same with a chunk of 256 at 4096", batch);
  }

 private:
  Machine machine_;
  Pool pool_;
  std::int64_t width_;
  std::int64_t kv_width_;
  KvPool kv_;
  std::unique_ptr<Attention> attention_;
  std::vector<float> q_, k_, v_, out_;
  std::vector<BlockId> table_;
};

int main_with(const Machine& m) {
  const Result<const KernelSet*> set = choose_kernel_set(m.isa);
  if (!set.ok()) {
    std::fprintf(stderr, "attention_bench: %s\n", set.error().message.c_str());
    return 1;
  }
  Bench(m, {(*set)->attention(m.head_dim), (*set)->kv_write}).all();
  return 0;
}

}  // namespace
}  // namespace linnet::cpu

int main(int argc, char** argv) {
  linnet::cpu::Machine machine;
  if (argc > 1) machine.isa = argv[1];
  if (argc > 2) machine.threads = std::atoi(argv[2]);
  if (argc > 5) {
    machine.heads = std::atoi(argv[3]);
    machine.kv_heads = std::atoi(argv[4]);
    machine.head_dim = std::atoi(argv[5]);
  }
  return linnet::cpu::main_with(machine);
}
