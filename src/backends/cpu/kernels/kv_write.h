// Writes keys and values into KV blocks: f32 to f16, rounded to nearest even.
#pragma once

#include <cstddef>
#include <cstdint>

namespace linnet::cpu {

// `count` tokens of one sequence at positions position .., all KV heads of a layer.
struct KvWriteTask {
  const float* k = nullptr;   // first token: [kv_heads][head_dim] contiguous, after rope
  std::int64_t k_stride = 0;  // floats from a token to the next
  const float* v = nullptr;
  std::int64_t v_stride = 0;
  std::byte* const* blocks = nullptr;  // the sequence's blocks from position 0
  std::size_t layer_offset = 0;        // bytes from a block's first to the layer
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;  // a multiple of 16
  std::int32_t position = 0;
  std::int32_t count = 0;
};

// False if a value was NaN or beyond f16's range (65504): zero is stored in its place, so that nothing of it reaches another row,
// and the row it belongs to has failed. A task that writes the first token of a block zeroes what it leaves of that block (this
// layer), so that nothing of the block's last owner stays. The bits stored are the same for all of these.
using KvWrite = bool (*)(const KvWriteTask& task);
bool kv_write_portable(const KvWriteTask& task);
bool kv_write_avx2(const KvWriteTask& task);
bool kv_write_avx512(const KvWriteTask& task);

}  // namespace linnet::cpu
