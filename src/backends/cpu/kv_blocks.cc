#include "backends/cpu/kv_blocks.h"

#include <string>
#include <utility>

#include "base/check.h"

namespace linnet::cpu {

Result<KvPool> KvPool::create(const KvLayout& layout, std::int32_t block_count) {
  CHECK(layout.layers > 0 && layout.kv_heads > 0 && layout.head_dim > 0 && layout.head_dim % 16 == 0);
  CHECK(block_count > 0);
  const auto count = static_cast<std::size_t>(block_count);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(layout.block_bytes(), count, &bytes)) {
    return Error{ErrorCode::kTooLarge,
                 std::to_string(block_count) + " KV blocks of " + std::to_string(layout.block_bytes()) +
                     " bytes are more than an address space; lower --context or --max-rows.",
                 "context"};
  }
  LINNET_ASSIGN(Region region, Region::reserve(bytes, "KV blocks"));
  KvPool pool;
  pool.layout_ = layout;
  pool.region_ = std::move(region);
  pool.blocks_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) pool.blocks_.push_back(pool.region_.data() + i * layout.block_bytes());
  return pool;
}

}  // namespace linnet::cpu
