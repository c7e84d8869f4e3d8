// Quantized weights times rounded rows in int8 tiles. High and low halves of a block of rows are one tile A, one below the other,
// so one product gives both sums of a group; 128 * high + low is the group's integer. Panels of bytes are tile B as they lie in
// memory; panels of nibbles are unpacked on the way or, for many rows, widened to bytes that stay in L2. bf16 tiles, which would
// hold a nibble group's integer in one f32 sum, are no quicker: tile loads and stores occupy the vector ports, one step a row,
// and theirs have twice the bytes.
#include <immintrin.h>

#include "backends/cpu/kernels/amx.h"
#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/simd_avx512.h"

namespace linnet::cpu {
namespace {

constexpr std::ptrdiff_t kPrefetchBytes = 3072;
constexpr int kAhead = 4;                          // groups from unpacking to use
constexpr int kRing = 8;                           // unpacked groups; a power of two, at least kAhead
constexpr int kPanelsMax = 48;                     // that meet a block of rows one after another
constexpr int kFewBlocks = 4;                      // of rows, for which nibbles are unpacked once each; more share widened panels
constexpr std::size_t kWeightsBytes = 640 * 1024;  // of them, where many blocks follow: they stay in L2
constexpr int kChunkGroups = 24;                   // of many blocks: a block's activations stay in L1 while panels pass by

struct alignas(64) Stage {
  std::int32_t sums[4][16][16];  // [group % 4][row: high halves, low halves][lane]
  std::byte ring[kRing][512];    // [group % kRing]: tile B
  float out[kPanelsMax][8][16];  // [panel][row][lane]; rows follow each other without gaps
};
static_assert(sizeof(Stage) + kWeightsBytes <= kLinearScratchBytes);

// One block of rows times panels that follow each other, over some of the groups; nibbles: over all.
struct Work {
  const std::byte* codes;  // the block's, from the first of the groups
  const float* x_sums;     // likewise
  const std::byte* weights;
  std::ptrdiff_t panel_bytes;
  int panels;
  std::ptrdiff_t groups;  // even, at least 4
  bool first;             // sums start from zero; else they go on from stage->out
  bool fetch;             // weights come from far
  Stage* stage;
};

// A group of nibbles as signed bytes: tile B, columns ascending.
template <bool kAffine>
[[gnu::always_inline]] inline void unpack_nibbles(const std::byte* from, std::byte* to) {
  const __m512i low_nibble = _mm512_set1_epi8(15);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i v = _mm512_loadu_si512(from + i * 64);
    __m512i low = _mm512_and_si512(v, low_nibble), high = _mm512_and_si512(_mm512_srli_epi16(v, 4), low_nibble);
    if constexpr (!kAffine) {
      low = _mm512_sub_epi8(low, _mm512_set1_epi8(8));
      high = _mm512_sub_epi8(high, _mm512_set1_epi8(8));
    }
    _mm512_storeu_si512(to + i * 64, low);
    _mm512_storeu_si512(to + 256 + i * 64, high);
  }
}

// kRows x 16 sums live in registers. Software pipeline, in groups: tile loads of g + 1 | products of g | tile store of g - 1 |
// fma of g - 3; the last groups of a panel drain while the next panel starts. Tiles, by the group's parity: C 0 and 1, B 2 and 3,
// A 4 and 5.
template <PanelFormat kFormat, int kRows>
class Block {
 public:
  explicit Block(const Work& work) : work_(work), ahead_(work.weights) {}

  [[gnu::always_inline]] inline void run() {
    const std::ptrdiff_t groups = work_.groups;
    const std::byte* weights = work_.weights;
    float* out = &work_.stage->out[0][0][0];
    ahead_end_ = work_.weights + work_.panels * work_.panel_bytes;
    for (int i = 0; i < kAhead; ++i) unpack_ahead(i);
    amx::zero<0>();
    amx::zero<1>();
    load<0>(0, weights, 0);
    begin(out);
    step<0, false, false>(1, weights, weights, 0);
    step<1, true, false>(2, weights, weights, 0);
    step<0, true, false>(3, weights, weights, 0);
    for (int panel = 1;; ++panel) {
      const bool last = panel == work_.panels;
      const std::byte* const next = last ? weights : weights + work_.panel_bytes;  // after the last panel: what may be read
      step<1, true, true>(groups > 4 ? 4 : 0, groups > 4 ? weights : next, weights, 0);
      for (std::ptrdiff_t g = 4; g < groups; g += 2) {
        const bool more = g + 2 < groups;
        step<0, true, true>(g + 1, weights, weights, g - 3);
        step<1, true, true>(more ? g + 2 : 0, more ? weights : next, weights, g - 2);
      }
      if (last) break;
      step<0, true, true>(1, next, weights, groups - 3);
      step<1, true, true>(2, next, weights, groups - 2);
      step<0, true, true>(3, next, weights, groups - 1);
      end(out);
      out += kRows * kPanelRows;
      weights = next;
      begin(out);
    }
    amx::store<1>(staged(-1), 64);
    for (int back = 3; back > 0; --back) add<0, kRows>(weights, groups - back, staged(-back));
    end(out);
  }

 private:
  static constexpr bool kNibbles = is_nibbles(kFormat);
  static constexpr std::ptrdiff_t kGroupBytes = panel_unit_bytes(kFormat);
  static constexpr std::ptrdiff_t kScales = kNibbles ? 256 : 512;

  // Where group count_ + offset of the stream of groups is staged.
  [[gnu::always_inline]] inline std::int32_t* staged(int offset) const { return &work_.stage->sums[(count_ + offset) & 3][0][0]; }

  // The next group of the stream, which will have this index, into the ring.
  [[gnu::always_inline]] inline void unpack_ahead(int index) {
    if constexpr (kNibbles) {
      if (ahead_ >= ahead_end_) return;
      unpack_nibbles<is_affine(kFormat)>(ahead_, work_.stage->ring[index & (kRing - 1)]);
      ahead_ += kGroupBytes;
    }
  }

  template <int kParity>
  [[gnu::always_inline]] inline void load(std::ptrdiff_t group, const std::byte* weights, int index) {
    const std::byte* const b = weights + group * kGroupBytes;
    amx::load<2 + kParity>(kNibbles ? work_.stage->ring[index & (kRing - 1)] : b, 64);
    amx::load<4 + kParity>(work_.codes + group * (kRows * 64), 32);
    if (!work_.fetch) return;
#pragma GCC unroll 9
    for (std::ptrdiff_t z = 0; z < kGroupBytes; z += 64)
      _mm_prefetch(reinterpret_cast<const char*>(b) + kPrefetchBytes + z, _MM_HINT_T0);
  }

  // Adds a staged group to rows [kBegin, kEnd).
  template <int kBegin, int kEnd>
  [[gnu::always_inline]] inline void add(const std::byte* weights, std::ptrdiff_t group, const std::int32_t* sums) {
    const std::byte* const scales = weights + group * kGroupBytes + kScales;
    const float* const x_sums = work_.x_sums + group * kRows;
    const __m512 scale = load_half(scales);
    __m512 bias = _mm512_setzero_ps();
    if constexpr (is_affine(kFormat)) bias = load_half(scales + 32);
#pragma GCC unroll 8
    for (int r = kBegin; r < kEnd; ++r) {
      const __m512i high = _mm512_slli_epi32(_mm512_load_si512(sums + r * 16), 7);
      const __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(high, _mm512_load_si512(sums + (kRows + r) * 16)));
      acc_[r] = _mm512_fmadd_ps(sum, scale, acc_[r]);
      if constexpr (is_affine(kFormat)) acc_[r] = _mm512_fmadd_ps(bias, _mm512_set1_ps(x_sums[r]), acc_[r]);
    }
  }

  // Products of a group of parity kParity, whose tiles are loaded; tile loads of the next; the sums of `summed`, three groups
  // back.
  template <int kParity, bool kStore, bool kSum>
  [[gnu::always_inline]] inline void step(std::ptrdiff_t next_group, const std::byte* next, const std::byte* weights,
                                          std::ptrdiff_t summed) {
    load<1 - kParity>(next_group, next, count_ + 1);
    amx::dot_int8<kParity, 4 + kParity, 2 + kParity>();
    if constexpr (kSum) add<0, kRows / 2>(weights, summed, staged(-3));
    unpack_ahead(count_ + kAhead);
    if constexpr (kStore) {
      amx::store<1 - kParity>(staged(-1), 64);
      amx::zero<1 - kParity>();
    }
    if constexpr (kSum) add<kRows / 2, kRows>(weights, summed, staged(-3));
    ++count_;
  }

  [[gnu::always_inline]] inline void begin(const float* out) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) acc_[r] = work_.first ? _mm512_setzero_ps() : _mm512_load_ps(out + r * kPanelRows);
  }
  [[gnu::always_inline]] inline void end(float* out) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) _mm512_store_ps(out + r * kPanelRows, acc_[r]);
  }

  Work work_;
  const std::byte* ahead_;  // packed weights to be unpacked next
  const std::byte* ahead_end_ = nullptr;
  int count_ = 0;  // groups whose products are done, of all panels
  __m512 acc_[kRows];
};

using RunBlock = void (*)(const Work&);

template <PanelFormat kFormat, int kRows>
[[gnu::noinline]] void run_block(const Work& work) {
  Block<kFormat, kRows> block(work);
  block.run();
}

template <PanelFormat kFormat>
RunBlock block_of(int rows) {
  switch (rows) {
    case 4:
      return run_block<kFormat, 4>;
    case 6:
      return run_block<kFormat, 6>;
    default:
      return run_block<kFormat, 8>;
  }
}
RunBlock block_of(PanelFormat format, int rows) {
  switch (format) {
    case PanelFormat::kNibblesSymmetric:
      return block_of<PanelFormat::kNibblesSymmetric>(rows);
    case PanelFormat::kNibblesAffine:
      return block_of<PanelFormat::kNibblesAffine>(rows);
    case PanelFormat::kBytesSymmetric:
      return block_of<PanelFormat::kBytesSymmetric>(rows);
    default:
      return block_of<PanelFormat::kBytesAffine>(rows);
  }
}

// Groups of the next chunk: so that none of less than four is left over; even.
constexpr int chunk_of(int left) {
  return left <= kChunkGroups + 2 ? left : (left < kChunkGroups + 4 ? kChunkGroups - 2 : kChunkGroups);
}

// C 0 and 1, B 2 and 3, A 4 and 5.
void configure_tiles(int block_rows) {
  amx::TileConfig config;
  for (const int tile : {0, 1}) config.set(tile, 2 * block_rows, 64);
  for (const int tile : {2, 3}) config.set(tile, 8, 64);
  for (const int tile : {4, 5}) config.set(tile, 2 * block_rows, 32);
  amx::configure(config);
}

// A nibble panel's groups as a byte panel's.
template <PanelFormat kFormat>
[[gnu::noinline]] void widen(const std::byte* from, std::byte* to, int groups) {
  constexpr std::ptrdiff_t kFrom = panel_unit_bytes(kFormat);
  constexpr std::ptrdiff_t kTo = kFrom + 256;
  for (; groups > 0; --groups, from += kFrom, to += kTo) {
#pragma GCC unroll 5
    for (std::ptrdiff_t z = 0; z < kFrom; z += 64)
      _mm_prefetch(reinterpret_cast<const char*>(from) + kPrefetchBytes + z, _MM_HINT_T0);
    unpack_nibbles<is_affine(kFormat)>(from, to);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 512), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 256)));
    if constexpr (is_affine(kFormat)) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 544), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 288)));
    }
  }
}

// Panels of one format where the kernels find them.
struct Panels {
  PanelFormat format;
  const std::byte* data;
  std::ptrdiff_t panel_bytes;
  int first;  // of the matrix
  int count;
};

// All blocks of rows, one after another, times some panels.
void run_panels(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const Panels& panels, Stage* stage) {
  const ActivationBlocks& bytes = x.bytes;
  const RunBlock run = block_of(panels.format, bytes.block_rows);
  const bool whole = bytes.blocks == 1 || is_nibbles(panels.format);
  Work work{};
  work.stage = stage;
  work.panel_bytes = panels.panel_bytes;
  work.panels = panels.count;
  work.fetch = bytes.blocks == 1;
  for (int b = 0; b < bytes.blocks; ++b) {
    for (int g = 0; g < x.groups;) {
      const int groups = whole ? x.groups : chunk_of(x.groups - g);
      const std::ptrdiff_t at = (std::ptrdiff_t{b} * x.groups + g) * bytes.block_rows;
      work.codes = bytes.codes + at * 64;
      work.x_sums = bytes.sums + at;
      work.weights = panels.data + static_cast<std::size_t>(g) * panel_unit_bytes(panels.format);
      work.groups = groups;
      work.first = g == 0;
      run(work);
      g += groups;
    }
    const int row = b * bytes.block_rows;
    const int row_end = row + bytes.block_rows < x.rows ? row + bytes.block_rows : x.rows;
    const std::ptrdiff_t tile = std::ptrdiff_t{bytes.block_rows} * kPanelRows;
    for (int p = 0; p < panels.count; p += 2) {
      const float* const sums = &stage->out[0][0][0] + p * tile;
      finish({&out, x.scales, weights.rows, panels.first + p, panels.count - p < 2 ? 1 : 2}, {sums, sums + tile, kPanelRows}, row,
             row_end - row);
    }
  }
}

// Widens nibble panels into the scratch, for many rows.
Panels widened(const Panels& panels, const Activations& x, std::byte* to) {
  const bool affine = is_affine(panels.format);
  const std::ptrdiff_t panel_bytes = std::ptrdiff_t{x.groups} * (affine ? 576 : 544);
  for (int p = 0; p < panels.count; ++p) {
    const std::byte* const from = panels.data + p * panels.panel_bytes;
    if (affine) {
      widen<PanelFormat::kNibblesAffine>(from, to + p * panel_bytes, x.groups);
    } else {
      widen<PanelFormat::kNibblesSymmetric>(from, to + p * panel_bytes, x.groups);
    }
  }
  return {affine ? PanelFormat::kBytesAffine : PanelFormat::kBytesSymmetric, to, panel_bytes, panels.first, panels.count};
}

}  // namespace

void linear_tiles_amx(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  configure_tiles(x.bytes.block_rows);
  auto* const stage = reinterpret_cast<Stage*>(share.scratch);
  const std::size_t byte_panel = static_cast<std::size_t>(x.groups) * 576;
  const auto fitting = static_cast<int>(kWeightsBytes / byte_panel) / 2 * 2;
  const int step = fitting < 2 ? 2 : (fitting < kPanelsMax ? fitting : kPanelsMax);
  const bool widen_them = is_nibbles(weights.format) && x.bytes.blocks > kFewBlocks && fitting >= 2;
  for (int p = share.panel_begin; p < share.panel_end; p += step) {
    const int count = share.panel_end - p < step ? share.panel_end - p : step;
    const Panels panels{weights.format, weights.panel(p), static_cast<std::ptrdiff_t>(weights.panel_bytes), p, count};
    run_panels(weights, x, out, widen_them ? widened(panels, x, share.scratch + sizeof(Stage)) : panels, stage);
  }
  amx::release();
}

}  // namespace linnet::cpu
