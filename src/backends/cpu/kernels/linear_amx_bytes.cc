// Weights of bytes times rounded rows in int8 tiles: panels are tile B as they lie in memory. High and low halves of a block of
// rows are one tile A, one below the other, so one product gives both sums of a group; 128 * high + low is the group's integer.
#include <immintrin.h>

#include "backends/cpu/kernels/amx.h"
#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/simd_avx512.h"

namespace linnet::cpu {
namespace {

constexpr int kPrefetchGroups = 6;

struct alignas(64) Stage {
  std::int32_t sums[4][2][16][16];  // [group % 4][panel][row: high halves, low halves][lane]
};
static_assert(sizeof(Stage) <= kLinearScratchFixedBytes);

// Blocks of rows times one or two panels.
struct Work {
  const std::byte* codes;  // of the first block
  std::size_t codes_stride;
  const float* sums;  // of x, likewise
  std::size_t sums_stride;
  int blocks;
  int groups;  // even, at least 4
  const std::byte* panel;
  std::size_t panel_bytes;
  Stage* stage;
  float* out;  // [blocks * rows][kFinishStride]
};

// As for nibbles: kRows x 16 * kPanels sums live in registers; products of g | tile store of g - 1 | fma of g - 3.
template <int kRows, int kPanels, bool kAffine, bool kFetch>
class Block {
 public:
  explicit Block(const Work& work) : work_(work) {}

  [[gnu::always_inline]] inline void run() {
    const std::byte* codes = work_.codes;
    const float* sums = work_.sums;
    float* out = work_.out;
    const int groups = work_.groups;
    begin();
    step<0, true, false, false>(codes, 0, 0, sums, 0);
    step<1, true, true, false>(codes, 1, 0, sums, 0);
    step<0, true, true, false>(codes, 2, 1, sums, 0);
    step<1, true, true, true>(codes, 3, 2, sums, 0);
    for (int b = 0;;) {
      for (int g = 4; g < groups; g += 2) {
        step<0, true, true, true>(codes, g, g - 1, sums, g - 3);
        step<1, true, true, true>(codes, g + 1, g, sums, g - 2);
      }
      if (++b == work_.blocks) break;
      codes += work_.codes_stride;
      step<0, true, true, true>(codes, 0, groups - 1, sums, groups - 3);
      step<1, true, true, true>(codes, 1, groups, sums, groups - 2);
      step<0, true, true, true>(codes, 2, groups + 1, sums, groups - 1);
      end(out);
      out += kRows * kFinishStride;
      sums += work_.sums_stride;
      begin();
      slot_ += groups;
      step<1, true, true, true>(codes, 3, 2, sums, 0);
    }
    step<0, false, true, true>(codes, 0, groups - 1, sums, groups - 3);
    step<0, false, false, true>(codes, 0, 0, sums, groups - 2);
    step<0, false, false, true>(codes, 0, 0, sums, groups - 1);
    end(out);
  }

 private:
  static constexpr std::size_t kGroupBytes = panel_unit_bytes(kAffine ? PanelFormat::kBytesAffine : PanelFormat::kBytesSymmetric);

  [[gnu::always_inline]] inline const std::byte* weights(int panel, int group) const {
    return work_.panel + static_cast<std::size_t>(panel) * work_.panel_bytes + static_cast<std::size_t>(group) * kGroupBytes;
  }

  template <int kPanel>
  [[gnu::always_inline]] inline void accumulate(const float* sums, int group) {
    const auto& staged = work_.stage->sums[(slot_ + group) & 3][kPanel];
    const std::byte* const scales = weights(kPanel, group) + 512;
    const __m512 scale = load_half(scales);
    __m512 bias = _mm512_setzero_ps();
    if constexpr (kAffine) bias = load_half(scales + 32);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i high = _mm512_slli_epi32(_mm512_load_si512(staged[r]), 7);
      const __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(high, _mm512_load_si512(staged[kRows + r])));
      acc_[kPanel][r] = _mm512_fmadd_ps(sum, scale, acc_[kPanel][r]);
      if constexpr (kAffine) acc_[kPanel][r] = _mm512_fmadd_ps(bias, _mm512_set1_ps(sums[group * kRows + r]), acc_[kPanel][r]);
    }
  }

  [[gnu::always_inline]] inline void fetch(int panel, int group) {
    if constexpr (kFetch) {
      const auto* const ahead = reinterpret_cast<const char*>(weights(panel, group + kPrefetchGroups));
#pragma GCC unroll 9
      for (int z = 0; z < 576; z += 64) _mm_prefetch(ahead + z, _MM_HINT_T0);
    }
  }

  template <int kParity, bool kLoad, bool kStore, bool kSum>
  [[gnu::always_inline]] inline void step(const std::byte* codes, int group, int stored, const float* sums, int summed) {
    constexpr int kNow = kParity * 2;
    constexpr int kBefore = (1 - kParity) * 2;
    auto& stage = work_.stage->sums[(slot_ + stored) & 3];
    if constexpr (kLoad) {
      amx::load<4>(weights(0, group), 64);
      amx::load<6>(codes + static_cast<std::ptrdiff_t>(group) * kRows * 64, 32);
      amx::dot_int8<kNow, 6, 4>();
      fetch(0, group);
    }
    if constexpr (kSum) accumulate<0>(sums, summed);
    if constexpr (kLoad && kPanels == 2) {
      amx::load<5>(weights(1, group), 64);
      amx::dot_int8<kNow + 1, 6, 5>();
      fetch(1, group);
    }
    if constexpr (kStore) {
      amx::store<kBefore>(stage[0], 64);
      amx::zero<kBefore>();
    }
    if constexpr (kSum && kPanels == 2) accumulate<1>(sums, summed);
    if constexpr (kStore && kPanels == 2) {
      amx::store<kBefore + 1>(stage[1], 64);
      amx::zero<kBefore + 1>();
    }
  }

  [[gnu::always_inline]] inline void begin() {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) acc_[p][r] = _mm512_setzero_ps();
    }
  }
  [[gnu::always_inline]] inline void end(float* out) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) _mm512_store_ps(out + r * kFinishStride + p * 16, acc_[p][r]);
    }
  }

  Work work_;
  int slot_ = 0;  // of the block's first group, going on across blocks
  __m512 acc_[kPanels][kRows];
};

template <int kRows, int kPanels, bool kAffine, bool kFetch>
[[gnu::noinline]] void run_block(const Work& work) {
  Block<kRows, kPanels, kAffine, kFetch> block(work);
  block.run();
}

using RunBlock = void (*)(const Work&);

template <int kPanels, bool kAffine, bool kFetch>
RunBlock block_of(int rows) {
  switch (rows) {
    case 4:
      return run_block<4, kPanels, kAffine, kFetch>;
    case 6:
      return run_block<6, kPanels, kAffine, kFetch>;
    default:
      return run_block<8, kPanels, kAffine, kFetch>;
  }
}

template <bool kAffine>
void linear_bytes(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  const ActivationBlocks& bytes = x.bytes;
  const bool fetch = bytes.blocks == 1;  // else the first block brings a panel into the cache for the others
  const RunBlock two = fetch ? block_of<2, kAffine, true>(bytes.block_rows) : block_of<2, kAffine, false>(bytes.block_rows);
  const RunBlock one = fetch ? block_of<1, kAffine, true>(bytes.block_rows) : block_of<1, kAffine, false>(bytes.block_rows);
  const int pass = kLinearPassRows / bytes.block_rows;
  const std::size_t sums_stride = static_cast<std::size_t>(x.groups) * static_cast<std::size_t>(bytes.block_rows);
  auto* const stage = reinterpret_cast<Stage*>(share.scratch);
  auto* const sums = reinterpret_cast<float*>(stage + 1);
  for (int b = 0; b < bytes.blocks; b += pass) {
    const int blocks = bytes.blocks - b < pass ? bytes.blocks - b : pass;
    const int row = b * bytes.block_rows;
    const int row_end = row + blocks * bytes.block_rows < x.rows ? row + blocks * bytes.block_rows : x.rows;
    const std::size_t at = static_cast<std::size_t>(b) * sums_stride;
    for (int p = share.panel_begin; p < share.panel_end; p += 2) {
      const int panels = share.panel_end - p < 2 ? 1 : 2;
      (panels == 2 ? two : one)({bytes.codes + at * 64, sums_stride * 64, bytes.sums + at, sums_stride, blocks, x.groups,
                                 weights.panel(p), weights.panel_bytes, stage, sums});
      finish({&out, x.scales, weights.rows, p, panels}, sums, row, row_end - row);
    }
  }
}

// C 0 .. 3, B 4 and 5, A 6.
void configure_tiles(int block_rows) {
  amx::TileConfig config;
  for (int tile = 0; tile < 4; ++tile) config.set(tile, 2 * block_rows, 64);
  for (int tile = 4; tile < 6; ++tile) config.set(tile, 8, 64);
  config.set(6, 2 * block_rows, 32);
  amx::configure(config);
}

}  // namespace

void linear_bytes_amx(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  configure_tiles(x.bytes.block_rows);
  if (is_affine(weights.format)) {
    linear_bytes<true>(weights, x, out, share);
  } else {
    linear_bytes<false>(weights, x, out, share);
  }
  amx::release();
}

}  // namespace linnet::cpu
