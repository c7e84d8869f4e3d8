#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "weights/half.h"
#include "backends/cpu/kernels/kv_write.h"
#include "backends/cpu/kv_blocks.h"

namespace linnet::cpu {
namespace {

// To a finite half; clears `finite` if that is not what rounding gives.
std::uint16_t finite_half(float value, bool& finite) {
  const std::uint16_t half = float_to_half(value);
  if ((half & 0x7fffU) < 0x7c00U) return half;
  finite = false;
  return 0;
}

}  // namespace

bool kv_write_portable(const KvWriteTask& task) {
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
      for (std::int32_t d = 0; d < task.head_dim; ++d) {
        k[layout.k_index(token, d)] = finite_half(from_k[d], finite);
        v[KvLayout::v_index(token, d)] = finite_half(from_v[d], finite);
      }
    }
  }
  return finite;
}

}  // namespace linnet::cpu
