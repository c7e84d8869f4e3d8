#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/cpu/kernels/kv_write.h"
#include "backends/cpu/kv_blocks.h"

namespace linnet::cpu {
namespace {

// 8 floats as f16, with zero for those that do not stay finite (rounding takes 65520 and more to infinity); clears `finite` then.
inline __m128i finite_halves(const float* from, bool& finite) {
  const __m256 x = _mm256_loadu_ps(from);
  const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x);
  const __m256 good = _mm256_cmp_ps(magnitude, _mm256_set1_ps(65520.0F), _CMP_LT_OQ);
  if (_mm256_movemask_ps(good) != 0xff) finite = false;
  return _mm256_cvtps_ph(_mm256_and_ps(x, good), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

}  // namespace

bool kv_write_avx2(const KvWriteTask& task) {
  const KvLayout layout{.layers = 1, .kv_heads = task.kv_heads, .head_dim = task.head_dim};
  bool finite = true;
  for (std::int32_t i = 0; i < task.count; ++i) {
    const std::int32_t token = (task.position + i) % kBlockTokens;
    std::byte* const block = task.blocks[(task.position + i) / kBlockTokens] + task.layer_offset;
    if (token == 0) std::memset(block, 0, layout.layer_bytes());
    for (std::int32_t head = 0; head < task.kv_heads; ++head) {
      auto* const k = reinterpret_cast<std::uint16_t*>(block + layout.offset(0, head));
      auto* const v = reinterpret_cast<std::uint16_t*>(block + layout.offset(0, head) + layout.half_bytes());
      const float* const from_k = task.k + i * task.k_stride + std::ptrdiff_t{head} * task.head_dim;
      const float* const from_v = task.v + i * task.v_stride + std::ptrdiff_t{head} * task.head_dim;
      for (std::int32_t d = 0; d < task.head_dim; d += 8) {
        alignas(16) std::uint16_t column[8];
        _mm_store_si128(reinterpret_cast<__m128i*>(column), finite_halves(from_k + d, finite));
        for (std::int32_t j = 0; j < 8; ++j) k[layout.k_index(token, d + j)] = column[j];
        _mm_storeu_si128(reinterpret_cast<__m128i*>(v + KvLayout::v_index(token, d)), finite_halves(from_v + d, finite));
      }
    }
  }
  return finite;
}

}  // namespace linnet::cpu
