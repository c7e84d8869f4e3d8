// Linear layers: GB/s of weights at few rows, TFLOP/s at many, repacking and rounding.
//   linear_bench [ISA] [THREADS] [TYPE] [COLUMNS_OUT COLUMNS_IN]      (amx 1 Q4_1 1536 576)
// Prints the median of 9 (least, most). Weights are many matrices, 64 MB together, taken in turn as a model with many layers
// does: they come from the last-level cache or memory, not from L2.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/kernel_set.h"
#include "backends/cpu/pool.h"
#include "backends/cpu/region.h"
#include "timing.h"

namespace linnet::cpu {
namespace {

struct Options {
  std::string isa;
  int threads = 1;
  std::string type = "Q4_1";
  std::int32_t outputs = 1536;
  std::int32_t inputs = 576;
};

// Random codes; scales near 2^-8.
std::vector<std::byte> random_weights(DType dtype, std::int64_t rows, std::int64_t cols) {
  std::vector<std::byte> bytes(tensor_bytes(dtype, rows, cols).value());
  std::mt19937 random(1);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0x3fU);  // no NaN as a float of any size
  const auto block = static_cast<std::size_t>(dtype_info(dtype).block_bytes);
  const std::uint16_t scale = 0x1c00;
  for (std::size_t at = 0; dtype_info(dtype).block_elements > 1 && at < bytes.size(); at += block)
    std::memcpy(&bytes[at], &scale, 2);
  return bytes;
}

class Bench {
 public:
  static constexpr std::int32_t kRowsMax = 512;

  Bench(const Options& options, const KernelSet& kernels, DType dtype)
      : kernels_(kernels),
        pool_({.threads = options.threads}),
        source_bytes_(random_weights(dtype, options.outputs, options.inputs)),
        source_{dtype, options.outputs, options.inputs, source_bytes_},
        matrix_(panel_matrix(panel_format(source_).value(), options.outputs, options.inputs).value()),
        copies_(std::max(1, static_cast<int>((std::size_t{64} << 20) / matrix_.bytes()))),
        weights_(Region::reserve(matrix_.bytes() * static_cast<std::size_t>(copies_), "weights").value()),
        activations_(Region::reserve(activations_bytes(kRowsMax, options.inputs), "activations").value()),
        scratch_(Region::reserve(linear_scratch_bytes() * static_cast<std::size_t>(options.threads), "scratch").value()),
        x_(static_cast<std::size_t>(kRowsMax) * static_cast<std::size_t>(options.inputs)),
        y_(static_cast<std::size_t>(kRowsMax) * static_cast<std::size_t>(options.outputs)),
        norm_(static_cast<std::size_t>(options.inputs), 1.0F) {
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    for (float& value : x_) value = normal(random);
  }

  void repacking() {
    const Times t = timed([&] {
      pool_.run([&](int thread, int threads) {
        for (int copy = 0; copy < copies_; ++copy) {
          const int panels = panels_of(source_.rows);
          repack(kernels_, source_, copy_of(copy), {}, {panels * thread / threads, panels * (thread + 1) / threads});
        }
      });
    });
    const double bytes = static_cast<double>(source_bytes_.size()) * copies_;
    std::printf("repack: %.1f GB/s of the file's bytes (%.1f .. %.1f)\n", bytes / t.median / 1e9, bytes / t.most / 1e9,
                bytes / t.least / 1e9);
  }

  void rows(int count) {
    const Activations x = make_activations(kernels_, activation_forms(matrix_), count, matrix_.cols, activations_.data());
    const Times round = timed([&] { rms_norm_round(kernels_, {x_.data(), matrix_.cols}, norm_.data(), 1e-5F, x, 0, count); });
    const int turns = std::max(1, copies_ / std::max(1, count / 4));
    const Times t = timed([&] {
      pool_.begin_step();
      for (int copy = 0; copy < turns; ++copy) {
        pool_.run([&](int thread, int threads) {
          std::byte* const scratch = scratch_.data() + static_cast<std::size_t>(thread) * linear_scratch_bytes();
          linear(kernels_, copy_of(copy), x, {y_.data(), matrix_.rows, Epilogue::kStore},
                 linear_share(matrix_, thread, threads, scratch));
        });
      }
      pool_.end_step();
    });
    const double flop = 2.0 * matrix_.rows * matrix_.cols * count * turns;
    const double bytes = static_cast<double>(matrix_.bytes()) * turns;
    std::printf("%3d rows: %8.1f us (%.1f .. %.1f), %5.1f GB/s, %.3f TFLOP/s; norm and rounding %.1f us\n", count,
                t.median / turns * 1e6, t.least / turns * 1e6, t.most / turns * 1e6, bytes / t.median / 1e9,
                flop / t.median / 1e12, round.median * 1e6);
  }

 private:
  PanelMatrix copy_of(int copy) const {
    PanelMatrix matrix = matrix_;
    matrix.data = weights_.data() + static_cast<std::size_t>(copy) * matrix_.bytes();
    return matrix;
  }

  const KernelSet& kernels_;
  Pool pool_;
  std::vector<std::byte> source_bytes_;
  Tensor source_;
  PanelMatrix matrix_;
  int copies_;
  Region weights_, activations_, scratch_;
  std::vector<float> x_, y_, norm_;
};

int run(const Options& options) {
  const auto kernels = choose_kernel_set(options.isa);
  if (!kernels) {
    std::fprintf(stderr, "%s\n", kernels.error().message.c_str());
    return 1;
  }
  const auto types = dtypes();
  const auto type = std::find_if(types.begin(), types.end(), [&](const DTypeInfo& info) { return info.name == options.type; });
  if (type == types.end() || !tensor_bytes(type->dtype, options.outputs, options.inputs)) {
    std::fprintf(stderr, "no panels of type '%s' with %d x %d weights\n", options.type.c_str(), options.outputs, options.inputs);
    return 1;
  }
  std::printf("%s, %d threads, %s [%d, %d]\n", std::string((*kernels)->name).c_str(), options.threads, options.type.c_str(),
              options.outputs, options.inputs);
  Bench bench(options, **kernels, type->dtype);
  bench.repacking();
  for (const int count : {1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512}) bench.rows(count);
  return 0;
}

}  // namespace
}  // namespace linnet::cpu

int main(int argc, char** argv) {
  linnet::cpu::Options options;
  if (argc > 1) options.isa = argv[1];
  if (argc > 2) options.threads = std::max(1, std::atoi(argv[2]));
  if (argc > 3) options.type = argv[3];
  if (argc > 5) {
    options.outputs = std::atoi(argv[4]);
    options.inputs = std::atoi(argv[5]);
  }
  return linnet::cpu::run(options);
}
