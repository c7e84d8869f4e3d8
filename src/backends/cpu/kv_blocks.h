// KV blocks: 32 tokens' keys and values of all layers, in f16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/region.h"
#include "base/ids.h"
#include "linnet/status.h"

namespace linnet::cpu {

inline constexpr std::int32_t kBlockTokens = 32;

// A block is [layer][KV head][K, V], and per layer and head
//   K [token / 16][dim][token % 16]               panels of 16 tokens
//   V [dim / 16][token % 16][token / 16][dim % 16]  panels of 16 dims, tokens in the order 0, 16, 1, 17, ...
// so that a line of 64 bytes holds two rows of a matrix operand, for K (rows: dims) and V (rows: tokens) alike, and a kernel
// without a matrix unit finds 16 tokens (K) or 16 dims (V) in a vector. Invariant: every number in a block is finite, also past
// the last token that was written (attention multiplies those by zero). write_kv (kernels/kv_write.h) keeps it; whoever brings
// blocks from elsewhere must.
struct KvLayout {
  std::int32_t layers = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;  // a multiple of 16

  constexpr std::size_t half_bytes() const { return std::size_t{kBlockTokens} * 2 * static_cast<std::size_t>(head_dim); }
  constexpr std::size_t head_bytes() const { return 2 * half_bytes(); }
  constexpr std::size_t layer_bytes() const { return static_cast<std::size_t>(kv_heads) * head_bytes(); }
  constexpr std::size_t block_bytes() const { return static_cast<std::size_t>(layers) * layer_bytes(); }
  constexpr std::size_t token_bytes() const { return block_bytes() / kBlockTokens; }
  // From a block's first byte to K of a layer and head; its V is half_bytes() further.
  constexpr std::size_t offset(std::int32_t layer, std::int32_t kv_head) const {
    return static_cast<std::size_t>(layer) * layer_bytes() + static_cast<std::size_t>(kv_head) * head_bytes();
  }

  // Where a number stands within K or V of a layer and head, in f16 elements.
  constexpr std::size_t k_index(std::int32_t token, std::int32_t dim) const {
    return static_cast<std::size_t>((token / 16 * head_dim + dim) * 16 + token % 16);
  }
  static constexpr std::size_t v_index(std::int32_t token, std::int32_t dim) {
    return static_cast<std::size_t>(dim / 16 * 512 + token % 16 * 32 + token / 16 * 16 + dim % 16);
  }

  bool operator==(const KvLayout&) const = default;
};

// The blocks of one model: memory reserved once, and a table from id to address. Move-only. Reading the table is thread-safe.
class KvPool {
 public:
  KvPool() = default;
  // Zeroed blocks. Errors: kTooLarge, naming the size and the flags that change it.
  static Result<KvPool> create(const KvLayout& layout, std::int32_t block_count);

  const KvLayout& layout() const { return layout_; }
  std::int32_t block_count() const { return static_cast<std::int32_t>(blocks_.size()); }
  std::byte* block(BlockId id) const { return blocks_[index_of(id)]; }
  std::span<std::byte* const> blocks() const { return blocks_; }
  std::size_t reserved_bytes() const { return region_.size(); }

  // Makes pages present before they are needed, as Region::touch.
  std::size_t touch(Pool& pool, std::chrono::nanoseconds limit) const { return region_.touch(pool, limit); }

 private:
  KvLayout layout_;
  Region region_;
  std::vector<std::byte*> blocks_;  // by id
};

}  // namespace linnet::cpu
