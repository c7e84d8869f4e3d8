// Quantized weights times rounded rows in int8 tiles. High and low halves of a block of rows are one tile A, one below the other,
// so one product gives both sums of a group; 256 * high + low is the group's integer. Panels of bytes are tile B as they lie in
// memory; panels of nibbles are unpacked on the way or, for many rows, widened to bytes that stay in L2. bf16 tiles, which would
// hold a nibble group's integer in one f32 sum, are no quicker: tile loads and stores occupy the vector ports, one step a row,
// and theirs have twice the bytes.
#include <immintrin.h>

#include "backends/cpu/kernels/amx.h"
#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/panel_shapes.h"
#include "backends/cpu/kernels/simd_avx512.h"

namespace linnet::cpu {
namespace {

constexpr std::ptrdiff_t kPrefetchBytes = 3072;
constexpr int kAhead = 4;                          // units from unpacking to use
constexpr int kRing = 8;                           // unpacked units; a power of two, at least kAhead
constexpr int kPanelsMax = 48;                     // that meet a block of rows one after another
constexpr int kFewBlocks = 4;                      // of rows, for which nibbles are unpacked once each; more share widened panels
constexpr std::size_t kWeightsBytes = 640 * 1024;  // of them, where many blocks follow: they stay in L2
constexpr int kChunkUnits = 24;  // of many blocks, whole segments: a block's activations stay in L1 while panels pass by

struct alignas(64) Stage {
  std::int32_t sums[4][16][16];  // [group % 4][row: high halves, low halves][lane]
  std::byte ring[kRing][512];    // [unit % kRing]: tile B
  float out[kPanelsMax][8][16];  // [panel][row][lane]; rows follow each other without gaps
};
static_assert(sizeof(Stage) + kWeightsBytes <= kLinearScratchBytes);

// One block of rows times panels that follow each other, over some of the groups; nibbles: over all.
struct Work {
  const std::byte* codes;  // the block's, from the first of the groups
  const float* scales;     // likewise, by segments
  const float* x_sums;     // likewise
  const std::byte* weights;
  std::ptrdiff_t panel_bytes;
  std::ptrdiff_t group_bytes;
  DType numbers;
  int panels;
  std::ptrdiff_t groups;  // even, at least 4
  bool first;             // y starts from zero; else it goes on from `out`
  bool fetch;             // weights come from far
  Stage* stage;
};

// A unit of nibbles as bytes: tile B, columns ascending.
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

// A group of a panel.
struct At {
  const std::byte* panel;
  std::ptrdiff_t group;
};

// kRows x 16 sums of a segment live in registers, those of whole segments in `out`. Software pipeline, in groups: tile loads of g
// + 1 | products of g | tile store of g - 1 | fma of g - 3; the last groups of a panel drain while the next panel starts. Tiles:
// C 0 and 1 by the group's parity, B 2 and 3, A 4 and 5 by the unit's.
template <PanelFormat kShape, int kRows>
class Block {
 public:
  explicit Block(const Work& work) : work_(work), ahead_(work.weights) {}

  [[gnu::always_inline]] inline void run() {
    const std::ptrdiff_t groups = work_.groups;
    const std::byte* panel = work_.weights;
    float* out = &work_.stage->out[0][0][0];
    ahead_end_ = work_.weights + work_.panels * work_.panel_bytes;
    for (int i = 0; i < kAhead; ++i) unpack_ahead(i);
    amx::zero<0>();
    amx::zero<1>();
    load<0>({panel, 0}, 0, 0);
    begin(out);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) acc_[r] = _mm512_setzero_ps();
    step<0, false, false>({panel, 0}, {panel, 1}, {panel, 0});
    step<1, true, false>({panel, 1}, {panel, 2}, {panel, 0});
    step<0, true, false>({panel, 2}, {panel, 3}, {panel, 0});
    for (int count = 1;; ++count) {
      const bool last = count == work_.panels;
      const std::byte* const next = last ? panel : panel + work_.panel_bytes;  // after the last panel: what may be read
      step<1, true, true>({panel, 3}, groups > 4 ? At{panel, 4} : At{next, 0}, {panel, 0});
      for (std::ptrdiff_t g = 4; g < groups; g += 2) {
        step<0, true, true>({panel, g}, {panel, g + 1}, {panel, g - 3});
        step<1, true, true>({panel, g + 1}, g + 2 < groups ? At{panel, g + 2} : At{next, 0}, {panel, g - 2});
      }
      if (last) break;
      step<0, true, true>({next, 0}, {next, 1}, {panel, groups - 3});
      step<1, true, true>({next, 1}, {next, 2}, {panel, groups - 2});
      step<0, true, true>({next, 2}, {next, 3}, {panel, groups - 1});
      out += kRows * kPanelRows;
      panel = next;
      begin(out);
    }
    amx::store<1>(staged(-1), 64);
    for (int back = 3; back > 0; --back) add<0, kRows>({panel, groups - back}, staged(-back));
  }

 private:
  static constexpr bool kNibbles = is_nibbles(kShape);
  static constexpr int kUnits = kShape.group < kUnit ? 1 : kShape.group / kUnit;  // products of a group
  static constexpr std::ptrdiff_t kUnitBytes = code_bytes(kShape) / kUnits;
  static constexpr std::ptrdiff_t kSegmentGroups = kSegmentUnits * kUnit / kShape.group;

  // Where group count_ + offset of the stream of groups is staged.
  [[gnu::always_inline]] inline std::int32_t* staged(int offset) const { return &work_.stage->sums[(count_ + offset) & 3][0][0]; }

  // The next unit of the stream, which will have this index, into the ring.
  [[gnu::always_inline]] inline void unpack_ahead(int index) {
    if constexpr (kNibbles) {
      if (ahead_ >= ahead_end_) return;
      unpack_nibbles<kShape.affine>(ahead_, work_.stage->ring[index & (kRing - 1)]);
      ahead_ += kUnitBytes;
      if (index % kUnits == kUnits - 1) ahead_ += work_.group_bytes - code_bytes(kShape);
    }
  }

  // Tiles of a unit of the group, which has this index in the stream of units.
  template <int kTile>
  [[gnu::always_inline]] inline void load(At at, int unit, int index) {
    const std::byte* const b = at.panel + at.group * work_.group_bytes + unit * kUnitBytes;
    const std::byte* a = work_.codes + (at.group * kUnits + unit) * (kRows * 64);
    if constexpr (kShape.group == 16) a = work_.codes + at.group / 2 * (kRows * 64) + at.group % 2 * 16;
    amx::load<2 + kTile>(kNibbles ? work_.stage->ring[index & (kRing - 1)] : b, 64);
    amx::load<4 + kTile>(a, 32);
    if (!work_.fetch) return;
    const std::ptrdiff_t bytes = kUnitBytes + (unit == kUnits - 1 ? work_.group_bytes - code_bytes(kShape) : 0);
    for (std::ptrdiff_t z = 0; z < bytes; z += 64)
      _mm_prefetch(reinterpret_cast<const char*>(b) + kPrefetchBytes + z, _MM_HINT_T0);
  }

  // Sums of x over a group: where kRows of them lie.
  [[gnu::always_inline]] inline const float* x_sums(std::ptrdiff_t group) {
    const float* const sums = work_.x_sums + group * kUnits * kRows;
    if constexpr (kUnits == 1) return sums;
    for (int r = 0; r < kRows; ++r) {
      group_sums_[r] = sums[r];
      for (int u = 1; u < kUnits; ++u) group_sums_[r] += sums[u * kRows + r];
    }
    return group_sums_;
  }

  // Adds a staged group to rows [kBegin, kEnd).
  template <int kBegin, int kEnd>
  [[gnu::always_inline]] inline void add(At at, const std::int32_t* sums) {
    const std::byte* const scales = at.panel + at.group * work_.group_bytes + code_bytes(kShape);
    const __m512 scale = load_numbers(work_.numbers, scales);
    __m512 bias = _mm512_setzero_ps();
    const float* x = nullptr;
    if constexpr (kShape.affine) {
      bias = load_numbers(work_.numbers, scales + (work_.group_bytes - code_bytes(kShape)) / 2);
      x = x_sums(at.group);
    }
#pragma GCC unroll 8
    for (int r = kBegin; r < kEnd; ++r) {
      const __m512i high = _mm512_slli_epi32(_mm512_load_si512(sums + r * 16), 8);
      const __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(high, _mm512_load_si512(sums + (kRows + r) * 16)));
      acc_[r] = _mm512_fmadd_ps(sum, scale, acc_[r]);
      if constexpr (kShape.affine) acc_[r] = _mm512_fmadd_ps(bias, _mm512_set1_ps(x[r]), acc_[r]);
    }
    if ((at.group + 1) % kSegmentGroups == 0 || at.group + 1 == work_.groups)
      add_segment<kBegin, kEnd>(at.group / kSegmentGroups);
  }

  // Adds the segment's sums, times the segment's scales, to those of rows [kBegin, kEnd).
  template <int kBegin, int kEnd>
  [[gnu::always_inline]] inline void add_segment(std::ptrdiff_t segment) {
    const float* const scales = work_.scales + segment * kRows;
#pragma GCC unroll 8
    for (int r = kBegin; r < kEnd; ++r) {
      float* const total = out_ + r * kPanelRows;
      _mm512_store_ps(total, _mm512_fmadd_ps(acc_[r], _mm512_set1_ps(scales[r]), _mm512_load_ps(total)));
      acc_[r] = _mm512_setzero_ps();
    }
  }

  template <int kC, int kTile>
  [[gnu::always_inline]] inline void multiply() {
    if constexpr (kShape.affine) {
      amx::dot_int8_unsigned<kC, 4 + kTile, 2 + kTile>();
    } else {
      amx::dot_int8<kC, 4 + kTile, 2 + kTile>();
    }
  }

  // Units kUnitIndex .. of a group of parity kParity: products of each while the tiles of the following one are loaded.
  template <int kParity, int kUnitIndex>
  [[gnu::always_inline]] inline void multiply_units(At now, At next) {
    constexpr int kTile = kUnits == 1 ? kParity : kUnitIndex % 2;
    constexpr bool kLast = kUnitIndex + 1 == kUnits;
    load<1 - kTile>(kLast ? next : now, kLast ? 0 : kUnitIndex + 1, count_ * kUnits + kUnitIndex + 1);
    multiply<kParity, kTile>();
    if constexpr (!kLast) {
      unpack_ahead(count_ * kUnits + kUnitIndex + kAhead);
      multiply_units<kParity, kUnitIndex + 1>(now, next);
    }
  }

  // Products of a group of parity kParity, whose first tiles are loaded; first tile loads of the next; the sums of `summed`,
  // three groups back.
  template <int kParity, bool kStore, bool kSum>
  [[gnu::always_inline]] inline void step(At now, At next, At summed) {
    multiply_units<kParity, 0>(now, next);
    if constexpr (kSum) add<0, kRows / 2>(summed, staged(-3));
    unpack_ahead(count_ * kUnits + kUnits - 1 + kAhead);
    if constexpr (kStore) {
      amx::store<1 - kParity>(staged(-1), 64);
      amx::zero<1 - kParity>();
    }
    if constexpr (kSum) add<kRows / 2, kRows>(summed, staged(-3));
    ++count_;
  }

  // The next panel's sums.
  [[gnu::always_inline]] inline void begin(float* out) {
    out_ = out;
    for (int r = 0; work_.first && r < kRows; ++r) _mm512_store_ps(out + r * kPanelRows, _mm512_setzero_ps());
  }

  Work work_;
  const std::byte* ahead_;  // packed weights to be unpacked next
  const std::byte* ahead_end_ = nullptr;
  int count_ = 0;         // groups whose products are done, of all panels
  __m512 acc_[kRows];     // of the segment
  float* out_ = nullptr;  // the panel's sums of whole segments
  float group_sums_[kRows] = {};
};

using RunBlock = void (*)(const Work&);

template <PanelFormat kShape, int kRows>
[[gnu::noinline]] void run_block(const Work& work) {
  Block<kShape, kRows> block(work);
  block.run();
}

RunBlock block_of(PanelFormat format, int rows) {
  RunBlock run = nullptr;
  with_panel_shape(format, [&]<PanelFormat kShape>() {
    run = rows == 4 ? run_block<kShape, 4> : (rows == 6 ? run_block<kShape, 6> : run_block<kShape, 8>);
  });
  return run;
}

// C 0 and 1, B 2 and 3, A 4 and 5; `columns` of a unit.
void configure_tiles(int block_rows, int columns) {
  amx::TileConfig config;
  for (const int tile : {0, 1}) config.set(tile, 2 * block_rows, 64);
  for (const int tile : {2, 3}) config.set(tile, columns / 4, 64);
  for (const int tile : {4, 5}) config.set(tile, 2 * block_rows, columns);
  amx::configure(config);
}

// A panel where the kernels find it, and those that follow it.
struct Panels {
  PanelFormat format;
  const std::byte* data;
  std::ptrdiff_t panel_bytes;
  int groups;
  int first;  // of the matrix
  int count;
};

// Groups of the next chunk: so that none of less than four is left over; even.
constexpr int chunk_of(int left, int chunk) { return left <= chunk + 2 ? left : chunk; }

// All blocks of rows, one after another, times some panels.
void run_panels(const Activations& x, const Finish& finish_as, const Panels& panels, Stage* stage) {
  const ActivationBlocks& bytes = x.bytes;
  const RunBlock run = block_of(panels.format, bytes.block_rows);
  const bool whole = bytes.blocks == 1 || is_nibbles(panels.format);
  Work work{};
  work.stage = stage;
  work.panel_bytes = panels.panel_bytes;
  work.group_bytes = panel_group_bytes(panels.format);
  work.numbers = panels.format.numbers;
  work.panels = panels.count;
  work.fetch = bytes.blocks == 1;
  for (int b = 0; b < bytes.blocks; ++b) {
    for (int g = 0; g < panels.groups;) {
      const int groups = whole ? panels.groups : chunk_of(panels.groups - g, kChunkUnits * kUnit / panels.format.group);
      const std::ptrdiff_t at =
          (std::ptrdiff_t{b} * x.units + std::ptrdiff_t{g} * panels.format.group / kUnit) * bytes.block_rows;
      work.codes = bytes.codes + at * 64;
      work.scales =
          bytes.scales +
          (std::ptrdiff_t{b} * x.segments() + std::ptrdiff_t{g} * panels.format.group / kUnit / kSegmentUnits) * bytes.block_rows;
      work.x_sums = bytes.sums + at;
      work.weights = panels.data + g * work.group_bytes;
      work.groups = groups;
      work.first = g == 0;
      run(work);
      g += groups;
    }
    const int row = b * bytes.block_rows;
    const int row_end = row + bytes.block_rows < x.rows ? row + bytes.block_rows : x.rows;
    const std::ptrdiff_t tile = std::ptrdiff_t{bytes.block_rows} * kPanelRows;
    for (int p = 0; p < panels.count; p += 2) {
      Finish two = finish_as;
      two.panel = panels.first + p;
      two.panels = panels.count - p < 2 ? 1 : 2;
      const float* const sums = &stage->out[0][0][0] + p * tile;
      finish(two, {sums, sums + tile, kPanelRows}, row, row_end - row);
    }
  }
}

// The panel of bytes that a panel of nibbles widens to, with f32 scales: whole lines, and no conversions when it is read.
constexpr PanelFormat widened(PanelFormat format) {
  return {.codes = Codes::kBytes, .group = format.group, .affine = format.affine, .numbers = DType::kF32};
}

[[gnu::noinline]] void widen_panel(PanelFormat format, int groups, const std::byte* from, std::byte* to) {
  const int sets = format.affine ? 2 : 1;
  for (; groups > 0; --groups) {
    for (std::ptrdiff_t z = 0; z < panel_group_bytes(format); z += 64)
      _mm_prefetch(reinterpret_cast<const char*>(from) + kPrefetchBytes + z, _MM_HINT_T0);
    for (int c = 0; c < format.group; c += kUnit, from += 256, to += 512) {
      if (format.affine) {
        unpack_nibbles<true>(from, to);
      } else {
        unpack_nibbles<false>(from, to);
      }
    }
    for (int i = 0; i < sets; ++i, from += numbers_bytes(format), to += 64)
      _mm512_storeu_ps(to, load_numbers(format.numbers, from));
  }
}

// Widens nibble panels into the scratch, for many rows.
Panels widen(const Panels& panels, std::byte* to) {
  Panels wide = panels;
  wide.format = widened(panels.format);
  wide.data = to;
  wide.panel_bytes = panels.groups * panel_group_bytes(wide.format);
  for (int p = 0; p < panels.count; ++p)
    widen_panel(panels.format, panels.groups, panels.data + p * panels.panel_bytes, to + p * wide.panel_bytes);
  return wide;
}

}  // namespace

void linear_tiles_amx(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  configure_tiles(x.bytes.block_rows, weights.format.group < kUnit ? weights.format.group : kUnit);
  auto* const stage = reinterpret_cast<Stage*>(share.scratch);
  const auto byte_panel = static_cast<std::size_t>(weights.groups * panel_group_bytes(widened(weights.format)));
  const auto fitting = static_cast<int>(kWeightsBytes / byte_panel) / 2 * 2;
  const int step = fitting < 2 ? 2 : (fitting < kPanelsMax ? fitting : kPanelsMax);
  const bool widen_them = is_nibbles(weights.format) && x.bytes.blocks > kFewBlocks && fitting >= 2;
  for (int p = share.panel_begin; p < share.panel_end; p += step) {
    const int count = share.panel_end - p < step ? share.panel_end - p : step;
    const Panels panels{weights.format, weights.panel(p), static_cast<std::ptrdiff_t>(weights.panel_bytes), weights.groups, p,
                        count};
    run_panels(x, {&out, &weights, 0, 0}, widen_them ? widen(panels, share.scratch + sizeof(Stage)) : panels, stage);
  }
  amx::release();
}

}  // namespace linnet::cpu
