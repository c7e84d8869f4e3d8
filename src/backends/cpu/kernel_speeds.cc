#include "backends/cpu/kernel_speeds.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>

#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/kernels/kernel_set.h"
#include "backends/cpu/kv_blocks.h"
#include "backends/cpu/pool.h"
#include "backends/cpu/region.h"
#include "base/check.h"
#include "base/clock.h"

namespace linnet::cpu {
namespace {

constexpr std::int32_t kWidth = 2048;  // of layers, in and out
constexpr std::int32_t kRowsMax = 512;
constexpr std::int32_t kContext = 4096;
constexpr std::size_t kWeightBytes = std::size_t{64} << 20;  // walked through
constexpr int kMeasurements = 3;
constexpr int kPiecePanels = 8;

// Bytes of which no float is NaN or infinite in any format: codes below 64, scales near 2^-8.
std::vector<std::byte> random_weights(DType dtype) {
  std::vector<std::byte> bytes(tensor_bytes(dtype, kWidth, kWidth).value());
  std::mt19937 random(1);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0x3fU);
  const auto block = static_cast<std::size_t>(dtype_info(dtype).block_bytes);
  const std::uint16_t scale = 0x1c00;
  for (std::size_t at = 0; dtype_info(dtype).block_elements > 1 && at < bytes.size(); at += block)
    std::memcpy(&bytes[at], &scale, sizeof scale);
  return bytes;
}

std::vector<float> random_floats(std::size_t count) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

class KernelBench {
 public:
  KernelBench(int threads, const KernelSet& kernels)
      : kernels_(kernels),
        pool_({.threads = threads}),
        x_(random_floats(std::size_t{kRowsMax} * kWidth)),
        y_(x_.size()),
        norm_(kWidth, 1.0F),
        activations_(Region::reserve(activations_bytes(kRowsMax, kWidth), "activations").value()),
        scratch_(Region::reserve(linear_scratch_bytes() * static_cast<std::size_t>(threads), "scratch").value()) {}

  void linears(DType dtype, std::vector<KernelSpeed>& speeds);
  void attention(std::vector<KernelSpeed>& speeds);
  void norm(std::vector<KernelSpeed>& speeds);

 private:
  // The median time of one step of `work`.
  template <class Work>
  double seconds_of(const Work& work) {
    const SystemClock clock;
    std::vector<double> times;
    for (int i = 0; i <= kMeasurements; ++i) {
      const auto start = clock.now();
      pool_.begin_step();
      work();
      pool_.end_step();
      if (i > 0) times.push_back(std::chrono::duration<double>(clock.now() - start).count());  // the first warms up
    }
    std::sort(times.begin(), times.end());
    return times[kMeasurements / 2];
  }

  const KernelSet& kernels_;
  Pool pool_;
  std::vector<float> x_, y_, norm_;
  Region activations_, scratch_;
};

void KernelBench::linears(DType dtype, std::vector<KernelSpeed>& speeds) {
  const std::vector<std::byte> bytes = random_weights(dtype);
  const Tensor source{dtype, kWidth, kWidth, bytes};
  PanelMatrix matrix = panel_matrix(panel_format(source).value(), kWidth, kWidth).value();
  const auto copies = static_cast<int>(std::max<std::size_t>(1, kWeightBytes / matrix.bytes()));
  const Region weights = Region::reserve(matrix.bytes() * static_cast<std::size_t>(copies), "weights").value();
  const auto copy_of = [&](int copy) {
    PanelMatrix copied = matrix;
    copied.data = weights.data() + static_cast<std::size_t>(copy) * matrix.bytes();
    return copied;
  };
  for (int copy = 0; copy < copies; ++copy) repack(kernels_, source, copy_of(copy), {}, {0, matrix.panels});
  for (const int rows : {1, 8, 64, 512}) {
    const Activations x = make_activations(kernels_, activation_forms(matrix), rows, kWidth, activations_.data());
    round_rows(kernels_, {x_.data(), kWidth}, x, 0, rows);
    const int turns = std::max(1, copies / std::max(1, rows / 4));
    const double seconds = seconds_of([&] {
      for (int copy = 0; copy < turns; ++copy) {
        const PanelMatrix copied = copy_of(copy);
        pool_.deal(matrix.panels / kPiecePanels, [&](int thread, WorkQueue& pieces) {
          std::byte* const scratch = scratch_.data() + static_cast<std::size_t>(thread) * linear_scratch_bytes();
          for (std::int64_t i = 0, end = 0; pieces.take(i, end);) {
            const auto first = static_cast<std::int32_t>(i) * kPiecePanels;
            linear(kernels_, copied, x, {y_.data(), kWidth, Epilogue::kStore}, {first, first + kPiecePanels, scratch});
          }
        });
      }
    });
    speeds.push_back({.kernel = std::string("linear ") + std::string(dtype_info(dtype).name),
                      .rows = rows,
                      .seconds = seconds / turns,
                      .bytes = static_cast<double>(matrix.bytes()),
                      .flops = 2.0 * kWidth * kWidth * rows});
  }
}

void KernelBench::attention(std::vector<KernelSpeed>& speeds) {
  constexpr std::int32_t kHeads = 32, kKvHeads = 8, kDim = 64, kLayers = 8;
  const KvLayout layout{.layers = kLayers, .kv_heads = kKvHeads, .head_dim = kDim};
  const KvPool kv = KvPool::create(layout, kContext / kBlockTokens).value();
  const AttentionOptions options{
      .layout = layout, .heads = kHeads, .rows_max = 1, .tokens_max = kRowsMax, .context_max = kContext};
  Attention attention = std::move(Attention::create(options, {kernels_.attention(kDim), kernels_.kv_write}, pool_)).value();
  std::vector<BlockId> table(kContext / kBlockTokens);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = BlockId{static_cast<std::uint32_t>(i)};
  std::shuffle(table.begin(), table.end(), std::mt19937(3));
  const auto plan = [&](std::int32_t position, std::int32_t count) {
    const AttentionRow row{.position = position, .count = count, .token_begin = 0, .blocks = table};
    attention.plan({&row, 1}, kv.blocks());
  };
  for (std::int32_t position = 0; position < kContext; position += kRowsMax) {
    plan(position, kRowsMax);
    for (std::int32_t layer = 0; layer < kLayers; ++layer)
      attention.write(pool_, layer, {x_.data(), kWidth}, {x_.data() + kKvHeads * kDim, kWidth}, [](int, int) {});
  }
  for (const int rows : {1, 8, kRowsMax}) {
    plan(kContext - rows, rows);
    const double seconds = seconds_of([&] {
      for (std::int32_t layer = 0; layer < kLayers; ++layer)
        attention.run(pool_, {.layer = layer}, {x_.data(), kWidth}, {y_.data(), kWidth});
    });
    const double keys = kContext - (rows - 1) / 2.0;
    speeds.push_back({.kernel = "attention at 4096",
                      .rows = rows,
                      .seconds = seconds / kLayers,
                      .bytes = static_cast<double>(layout.layer_bytes()) * kContext / kBlockTokens,
                      .flops = 4.0 * keys * rows * kHeads * kDim});
  }
}

void KernelBench::norm(std::vector<KernelSpeed>& speeds) {
  for (const int rows : {1, kRowsMax}) {
    const ActivationForms forms{.units = kWidth / kUnit};
    const double seconds = seconds_of([&] {
      const int pieces = std::max(1, rows / kTileRowsMax);
      pool_.deal(pieces, [&](int, WorkQueue& queue) {
        const Activations x = make_activations(kernels_, forms, rows, kWidth, activations_.data());
        for (std::int64_t i = 0, end = 0; queue.take(i, end);) {
          const Share share = share_of(rows, static_cast<int>(i), pieces, kTileRowsMax);
          rms_norm_round(kernels_, {x_.data(), kWidth}, norm_.data(), 1e-5F, x, static_cast<int>(share.begin),
                         static_cast<int>(share.end));
        }
      });
    });
    speeds.push_back({.kernel = "norm and rounding",
                      .rows = rows,
                      .seconds = seconds,
                      .bytes = 6.0 * rows * kWidth,
                      .flops = 5.0 * rows * kWidth});
  }
}

}  // namespace

std::vector<KernelSpeed> measure_kernels(int threads, std::string_view kernels) {
  const Result<const KernelSet*> set = choose_kernel_set(kernels);
  CHECK_MSG(set.ok(), std::string(kernels));
  KernelBench bench(threads, **set);
  std::vector<KernelSpeed> speeds;
  for (const DType dtype : {DType::kQ4_0, DType::kQ4_1, DType::kQ8_0, DType::kF16}) bench.linears(dtype, speeds);
  bench.attention(speeds);
  bench.norm(speeds);
  return speeds;
}

}  // namespace linnet::cpu
