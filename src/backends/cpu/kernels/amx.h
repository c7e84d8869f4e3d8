// Tile instructions, wrapped once: the compilers' intrinsics don't say which memory they read and write. For files built for AMX
// only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace linnet::cpu::amx {

// Rows and bytes per row of the eight tiles.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  constexpr void set(int tile, int row_count, int bytes) {
    rows[tile] = static_cast<std::uint8_t>(row_count);
    row_bytes[tile] = static_cast<std::uint16_t>(bytes);
  }
};
static_assert(sizeof(TileConfig) == 64);

// Sets the shapes of this thread's tiles and zeroes them.
inline void configure(const TileConfig& config) { asm volatile("ldtilecfg %0" ::"m"(config) : "memory"); }
// Lets the thread go on without tile state, which makes its switches cheaper.
inline void release() { asm volatile("tilerelease" ::: "memory"); }

template <int kTile>
[[gnu::always_inline]] inline void load(const void* rows, std::ptrdiff_t stride) {
  asm volatile("tileloadd (%0,%1,1),%%tmm%c2" ::"r"(rows), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
[[gnu::always_inline]] inline void store(void* rows, std::ptrdiff_t stride) {
  asm volatile("tilestored %%tmm%c2,(%0,%1,1)" ::"r"(rows), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
[[gnu::always_inline]] inline void zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
// C[m][n] += sum over pairs p of A[m][2p] B[p][2n] + A[m][2p + 1] B[p][2n + 1], bf16 into f32.
template <int kC, int kA, int kB>
[[gnu::always_inline]] inline void dot_bf16() {
  asm volatile("tdpbf16ps %%tmm%c2,%%tmm%c1,%%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}
// The same for quads of signed bytes into int32, without saturation.
template <int kC, int kA, int kB>
[[gnu::always_inline]] inline void dot_int8() {
  asm volatile("tdpbssd %%tmm%c2,%%tmm%c1,%%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}
// Signed A, unsigned B.
template <int kC, int kA, int kB>
[[gnu::always_inline]] inline void dot_int8_unsigned() {
  asm volatile("tdpbsud %%tmm%c2,%%tmm%c1,%%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}

}  // namespace linnet::cpu::amx
