// Weights of nibbles times rounded rows in bf16 tiles, exactly: a 4-bit weight and either half of an activation (the high one
// times 128) are bf16 numbers without loss, and a group's sum stays below 2^24, so the tile's f32 accumulator holds the group's
// integer whatever the order of addition. What is left for vectors is one or two fma for 16 outputs and a group.
#include <immintrin.h>

#include <array>

#include "backends/cpu/kernels/amx.h"
#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/simd_avx512.h"

namespace linnet::cpu {
namespace {

constexpr int kChunkGroups = 8;                 // groups whose unpacked weights stay in L1
constexpr int kAhead = 4;                       // groups from unpacking to use while unpacking goes along
constexpr std::size_t kPassBytes = 768 * 1024;  // activations of one pass over the weights: they stay in L2
constexpr int kPrefetchBytes = 2560;

// A group of one panel, as tile B wants it: 16 pairs of columns x 16 lanes.
struct alignas(64) Unpacked {
  std::uint16_t codes[16][32];
  float scales[16];
  float biases[16];
};

struct alignas(64) Stage {
  float sums[4][2][16][16];  // [group % 4][panel][row][lane]
};

struct Scratch {
  Unpacked* weights;  // [2][kChunkGroups]
  Stage* stage;
  float* sums;  // [rows of a pass][kFinishStride]
};

Scratch scratch_at(std::byte* base) {
  auto* const weights = reinterpret_cast<Unpacked*>(base);
  auto* const stage = reinterpret_cast<Stage*>(weights + 2 * kChunkGroups);
  return {weights, stage, reinterpret_cast<float*>(stage + 1)};
}
static_assert(2 * kChunkGroups * sizeof(Unpacked) + sizeof(Stage) <= kLinearScratchFixedBytes);

constexpr std::uint16_t bf16_of(int value) {
  return static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, static_cast<float>(value)) >> 16);
}

// Indices are the low 5 bits of a word; bit 4 belongs to the next nibble, so the 16 values stand twice.
template <bool kAffine>
[[gnu::always_inline]] inline __m512i nibble_values() {
  alignas(64) static constexpr auto table = [] {
    std::array<std::uint16_t, 32> t{};
    for (unsigned i = 0; i < 32; ++i) t[i] = bf16_of(static_cast<int>(i % 16) - (kAffine ? 0 : 8));
    return t;
  }();
  return _mm512_load_si512(table.data());
}

// Four rows of tile B from vector `i` of a group: pairs of columns (4i, 4i + 2), (16 + 4i, 18 + 4i), (4i + 1, 4i + 3), (17 + 4i,
// 19 + 4i).
[[gnu::always_inline]] inline void unpack_quarter(const std::byte* group, Unpacked& to, int i, __m512i values) {
  const __m512i v = _mm512_loadu_si512(group + i * 64);
  _mm512_store_si512(to.codes[4 * i], _mm512_permutexvar_epi16(v, values));
  _mm512_store_si512(to.codes[4 * i + 1], _mm512_permutexvar_epi16(_mm512_srli_epi16(v, 4), values));
  _mm512_store_si512(to.codes[4 * i + 2], _mm512_permutexvar_epi16(_mm512_srli_epi16(v, 8), values));
  _mm512_store_si512(to.codes[4 * i + 3], _mm512_permutexvar_epi16(_mm512_srli_epi16(v, 12), values));
}
template <bool kAffine>
[[gnu::always_inline]] inline void unpack_group(const std::byte* group, Unpacked& to, __m512i values) {
#pragma GCC unroll 5
  for (int z = 0; z < 320; z += 64) _mm_prefetch(reinterpret_cast<const char*>(group) + kPrefetchBytes + z, _MM_HINT_T0);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) unpack_quarter(group, to, i, values);
  _mm512_store_ps(to.scales, load_half(group + 256));
  if constexpr (kAffine) _mm512_store_ps(to.biases, load_half(group + 288));
}
template <bool kAffine>
constexpr std::size_t group_bytes() {
  return panel_unit_bytes(kAffine ? PanelFormat::kNibblesAffine : PanelFormat::kNibblesSymmetric);
}

// Blocks of rows times one or two panels over some groups.
struct Work {
  const std::byte* codes;    // of the first block and group
  std::size_t codes_stride;  // bytes from a block to the next
  const float* sums;         // of x, likewise
  std::size_t sums_stride;   // floats
  int blocks;
  int groups;              // even, at least 4
  Unpacked* weights;       // ring of kChunkGroups groups, for each panel
  const std::byte* panel;  // the panel's first group, if weights are unpacked along the way
  std::size_t panel_bytes;
  Stage* stage;
  float* out;  // [blocks * rows][kFinishStride]
  bool first;  // start from zero; else from out
};

// A block of kRows x 16 * kPanels sums lives in registers. Software pipeline, in groups: unpack g + 4 | products of g | tile
// store of g - 1 | fma of g - 3; the last groups of a block drain while the next block starts. A tile product is quick while tile
// B stays, so both halves of the activations meet one B before the next; zeroing is free right behind the store of the same tile.
template <int kRows, int kPanels, bool kAffine, bool kUnpack>
class Block {
 public:
  explicit Block(const Work& work) : work_(work), values_(nibble_values<kAffine>()) {}

  [[gnu::always_inline]] inline void run() {
    const Work& w = work_;
    const std::byte* codes = w.codes;
    const float* sums = w.sums;
    float* out = w.out;
    const int groups = w.groups;
    begin(out);
    if constexpr (kUnpack) {
      for (int g = 0; g < kAhead; ++g) {
        for (int p = 0; p < kPanels; ++p) unpack_ahead(p, g);
      }
    }
    step<0, true, false, false>(codes, 0, 0, sums, 0);
    step<1, true, true, false>(codes, 1, 0, sums, 0);
    step<0, true, true, false>(codes, 2, 1, sums, 0);
    step<1, true, true, true>(codes, 3, 2, sums, 0);
    for (int b = 0;;) {
      for (int g = 4; g < groups; g += 2) {
        step<0, true, true, true>(codes, g, g - 1, sums, g - 3);
        step<1, true, true, true>(codes, g + 1, g, sums, g - 2);
      }
      if (++b == w.blocks) break;
      codes += w.codes_stride;
      step<0, true, true, true>(codes, 0, groups - 1, sums, groups - 3);
      step<1, true, true, true>(codes, 1, groups, sums, groups - 2);
      step<0, true, true, true>(codes, 2, groups + 1, sums, groups - 1);
      end(out);
      out += kRows * kFinishStride;
      sums += w.sums_stride;
      begin(out);
      slot_ += groups;
      step<1, true, true, true>(codes, 3, 2, sums, 0);
    }
    step<0, false, true, true>(codes, 0, groups - 1, sums, groups - 3);
    step<0, false, false, true>(codes, 0, 0, sums, groups - 2);
    step<0, false, false, true>(codes, 0, 0, sums, groups - 1);
    end(out);
  }

 private:
  struct Scales {
    __m512 scale[kPanels];
    __m512 bias[kPanels];
  };

  [[gnu::always_inline]] inline Unpacked& unpacked(int panel, int group) {
    return work_.weights[panel * kChunkGroups + group % kChunkGroups];
  }

  [[gnu::always_inline]] inline void unpack_ahead(int panel, int group) {
    const std::size_t at =
        static_cast<std::size_t>(panel) * work_.panel_bytes + static_cast<std::size_t>(group) * group_bytes<kAffine>();
    unpack_group<kAffine>(work_.panel + at, unpacked(panel, group), values_);
  }

  [[gnu::always_inline]] inline void load_scales(Scales& s, int group) {
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      s.scale[p] = _mm512_load_ps(unpacked(p, group).scales);
      if constexpr (kAffine) s.bias[p] = _mm512_load_ps(unpacked(p, group).biases);
    }
  }

  // Adds a staged group to rows [kBegin, kEnd).
  template <int kBegin, int kEnd>
  [[gnu::always_inline]] inline void accumulate(const Scales& s, const float* sums, int group) {
    const auto& staged = work_.stage->sums[(slot_ + group) & 3];
#pragma GCC unroll 16
    for (int r = kBegin; r < kEnd; ++r) {
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        acc_[p][r] = _mm512_fmadd_ps(_mm512_load_ps(staged[p][r]), s.scale[p], acc_[p][r]);
        if constexpr (kAffine) acc_[p][r] = _mm512_fmadd_ps(s.bias[p], _mm512_set1_ps(sums[group * kRows + r]), acc_[p][r]);
      }
    }
  }

  // Products of `group` into the tiles of parity kParity, tile store of group `stored`, sums of group `summed`.
  template <int kParity, bool kLoad, bool kStore, bool kSum>
  [[gnu::always_inline]] inline void step(const std::byte* codes, int group, int stored, const float* sums, int summed) {
    constexpr int kQuarter = kRows / 4;
    constexpr int kNow = kParity * 2;
    constexpr int kBefore = (1 - kParity) * 2;
    const std::byte* const a = codes + static_cast<std::ptrdiff_t>(group) * kRows * 128;
    auto& stage = work_.stage->sums[(slot_ + stored) & 3];
    Scales s;
    if constexpr (kSum) load_scales(s, summed);
    if constexpr (kLoad) {
      amx::load<4>(&unpacked(0, group), 64);
      amx::load<6>(a, 64);
      amx::dot_bf16<kNow, 6, 4>();
      amx::load<7>(a + kRows * 64, 64);
      amx::dot_bf16<kNow, 7, 4>();
    }
    if constexpr (kSum) accumulate<0, kQuarter>(s, sums, summed);
    if constexpr (kUnpack && kLoad) {
      if (group + kAhead < work_.groups) unpack_ahead(0, group + kAhead);
    }
    if constexpr (kLoad && kPanels == 2) {
      amx::load<5>(&unpacked(1, group), 64);
      amx::dot_bf16<kNow + 1, 6, 5>();
      amx::dot_bf16<kNow + 1, 7, 5>();
    }
    if constexpr (kSum) accumulate<kQuarter, 2 * kQuarter>(s, sums, summed);
    if constexpr (kUnpack && kLoad && kPanels == 2) {
      if (group + kAhead < work_.groups) unpack_ahead(1, group + kAhead);
    }
    if constexpr (kStore) {
      amx::store<kBefore>(stage[0], 64);
      amx::zero<kBefore>();
    }
    if constexpr (kSum) accumulate<2 * kQuarter, 3 * kQuarter>(s, sums, summed);
    if constexpr (kStore && kPanels == 2) {
      amx::store<kBefore + 1>(stage[1], 64);
      amx::zero<kBefore + 1>();
    }
    if constexpr (kSum) accumulate<3 * kQuarter, kRows>(s, sums, summed);
  }

  [[gnu::always_inline]] inline void begin(const float* out) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p)
        acc_[p][r] = work_.first ? _mm512_setzero_ps() : _mm512_load_ps(out + r * kFinishStride + p * 16);
    }
  }
  [[gnu::always_inline]] inline void end(float* out) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) _mm512_store_ps(out + r * kFinishStride + p * 16, acc_[p][r]);
    }
  }

  Work work_;
  __m512i values_;
  int slot_ = 0;  // of the block's first group, going on across blocks
  __m512 acc_[kPanels][kRows];
};

template <int kRows, int kPanels, bool kAffine, bool kUnpack>
[[gnu::noinline]] void run_block(const Work& work) {
  Block<kRows, kPanels, kAffine, kUnpack> block(work);
  block.run();
}

template <bool kAffine>
[[gnu::noinline]] void unpack_chunk(const std::byte* from, Unpacked* to, int groups) {
  const __m512i values = nibble_values<kAffine>();
  for (int g = 0; g < groups; ++g)
    unpack_group<kAffine>(from + static_cast<std::size_t>(g) * group_bytes<kAffine>(), to[g], values);
}

using RunBlock = void (*)(const Work&);

// Block rows are even (nibble_block_rows); many rows come in blocks of 10 to 12.
template <int kPanels, bool kAffine, bool kUnpack>
RunBlock block_of(int rows) {
  if constexpr (kUnpack) {
    switch (rows) {
      case 4:
        return run_block<4, kPanels, kAffine, true>;
      case 6:
        return run_block<6, kPanels, kAffine, true>;
      case 8:
        return run_block<8, kPanels, kAffine, true>;
      case 10:
        return run_block<10, kPanels, kAffine, true>;
      case 12:
        return run_block<12, kPanels, kAffine, true>;
      case 14:
        return run_block<14, kPanels, kAffine, true>;
      default:
        return run_block<16, kPanels, kAffine, true>;
    }
  } else {
    return rows == 10 ? run_block<10, kPanels, kAffine, false> : run_block<12, kPanels, kAffine, false>;
  }
}

// One matrix's share.
template <bool kAffine>
class Nibbles {
 public:
  Nibbles(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share)
      : weights_(weights), x_(x), tiles_(x.tiles), out_(out), share_(share), scratch_(scratch_at(share.scratch)) {
    codes_stride_ = static_cast<std::size_t>(x.groups) * static_cast<std::size_t>(tiles_.block_rows) * 128;
    sums_stride_ = static_cast<std::size_t>(x.groups) * static_cast<std::size_t>(tiles_.block_rows);
  }

  // One or two blocks: the weights are unpacked while they are used, once for each block.
  void few_rows() {
    const RunBlock run = block_of<1, kAffine, true>(tiles_.block_rows);
    for (int p = share_.panel_begin; p < share_.panel_end; p += 2) {
      const int panels = share_.panel_end - p < 2 ? 1 : 2;
      for (int b = 0; b < tiles_.blocks; ++b) {
        for (int i = 0; i < panels; ++i) {
          Work work = work_at(b, 1, 0, x_.groups);
          work.panel = weights_.panel(p + i);
          work.out = scratch_.sums + i * kPanelRows;
          run(work);
        }
        finish_blocks(p, panels, b, 1);
      }
    }
  }

  // Many blocks: a chunk of two panels is unpacked once and meets all blocks that L2 holds.
  void many_rows() {
    const RunBlock two = block_of<2, kAffine, false>(tiles_.block_rows);
    const RunBlock one = block_of<1, kAffine, false>(tiles_.block_rows);
    const int fitting = static_cast<int>(kPassBytes / codes_stride_);
    const int pass =
        fitting < 1 ? 1 : (fitting > kLinearPassRows / tiles_.block_rows ? kLinearPassRows / tiles_.block_rows : fitting);
    for (int b = 0; b < tiles_.blocks; b += pass) {
      const int blocks = tiles_.blocks - b < pass ? tiles_.blocks - b : pass;
      for (int p = share_.panel_begin; p < share_.panel_end; p += 2) {
        const int panels = share_.panel_end - p < 2 ? 1 : 2;
        for (int g = 0; g < x_.groups;) {
          const int left = x_.groups - g;
          const int groups =
              left <= kChunkGroups ? left : (left < kChunkGroups + 4 ? kChunkGroups - 4 : kChunkGroups);  // at least 4 remain
          for (int i = 0; i < panels; ++i) {
            const std::byte* const from = weights_.panel(p + i) + static_cast<std::size_t>(g) * group_bytes<kAffine>();
            unpack_chunk<kAffine>(from, scratch_.weights + i * kChunkGroups, groups);
          }
          (panels == 2 ? two : one)(work_at(b, blocks, g, groups));
          g += groups;
        }
        finish_blocks(p, panels, b, blocks);
      }
    }
  }

 private:
  Work work_at(int block, int blocks, int group, int groups) const {
    const std::size_t b = static_cast<std::size_t>(block);
    const std::size_t at = static_cast<std::size_t>(group) * static_cast<std::size_t>(tiles_.block_rows);
    Work work{};
    work.codes = tiles_.codes + b * codes_stride_ + at * 128;
    work.codes_stride = codes_stride_;
    work.sums = tiles_.sums + b * sums_stride_ + at;
    work.sums_stride = sums_stride_;
    work.blocks = blocks;
    work.groups = groups;
    work.weights = scratch_.weights;
    work.panel_bytes = weights_.panel_bytes;
    work.stage = scratch_.stage;
    work.out = scratch_.sums;
    work.first = group == 0;
    return work;
  }

  void finish_blocks(int panel, int panels, int block, int blocks) const {
    const int begin = block * tiles_.block_rows;
    const int end = begin + blocks * tiles_.block_rows;
    finish({&out_, x_.scales, weights_.rows, panel, panels}, scratch_.sums, begin, (end < x_.rows ? end : x_.rows) - begin);
  }

  const PanelMatrix& weights_;
  const Activations& x_;
  const ActivationBlocks& tiles_;
  const LinearOutput& out_;
  const LinearShare& share_;
  Scratch scratch_;
  std::size_t codes_stride_ = 0;
  std::size_t sums_stride_ = 0;
};

// C 0 .. 3, B 4 and 5, A 6 and 7.
void configure_tiles(int block_rows) {
  amx::TileConfig config;
  for (int tile = 0; tile < 8; ++tile) config.set(tile, tile == 4 || tile == 5 ? 16 : block_rows, 64);
  amx::configure(config);
}

template <bool kAffine>
void linear_nibbles(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  configure_tiles(x.tiles.block_rows);
  Nibbles<kAffine> task(weights, x, out, share);
  if (x.tiles.blocks <= kNibbleFewBlocks) {
    task.few_rows();
  } else {
    task.many_rows();
  }
  amx::release();
}

}  // namespace

void linear_nibbles_amx(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  if (is_affine(weights.format)) {
    linear_nibbles<true>(weights, x, out, share);
  } else {
    linear_nibbles<false>(weights, x, out, share);
  }
}

}  // namespace linnet::cpu
