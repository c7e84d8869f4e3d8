#include "engine/lifecycle.h"

#include <utility>

#include "base/check.h"

namespace linnet {
namespace {

std::string name_space_of(const LifecycleServices& services, const Request& request) {
  PrefixNamespace parts = services.base;
  parts.scope = request.cache_scope;
  return paged_prefix_namespace(parts);
}

}  // namespace

SequenceLifecycle::SequenceLifecycle(const LifecycleServices& services, const ExecutionPlan& plan, const Request& request)
    : services_(&services),
      plan_(plan),
      name_space_(plan.prompt_cache ? name_space_of(services, request) : ""),
      returns_(!request.session.empty()) {}

std::optional<Reused> SequenceLifecycle::begin(std::span<const TokenId> history, std::int32_t count, std::int32_t reserve,
                                               Clock::Duration now) {
  CHECK(blocks_.empty() && !history.empty());
  PrefixLease lease;
  if (plan_.prompt_cache) lease = services_->cache.take(use(now), history, static_cast<std::int32_t>(history.size()) - 1);
  const std::int32_t needed = count - lease.whole().size() + reserve;
  if (!services_->cache.make_room(needed)) {
    // The block to copy from may be the very one that is missing.
    lease.drop_partial();
    if (!services_->cache.make_room(needed)) return std::nullopt;
  }
  services_->cache.record_hit(lease);
  const Reused reused{.tokens = lease.tokens(), .whole_tokens = lease.whole_tokens(), .copy_from = lease.partial()};
  blocks_ = lease.take_whole();
  shared_ = blocks_.size();
  blocks_.reserve(count);
  blocks_.append(*services_->pool.take(count - blocks_.size()));
  return reused;
}

SequenceLifecycle SequenceLifecycle::beside(std::int32_t shared, std::int32_t own) const {
  SequenceLifecycle other(*this, blocks_.share(shared));
  other.blocks_.append(*services_->pool.take(own));
  return other;
}

void SequenceLifecycle::exchange_first(BlockRun run) {
  shared_ = run.size();
  blocks_.drop_first(shared_);
  run.append(std::move(blocks_));
  blocks_ = std::move(run);
}

Reused SequenceLifecycle::look_again(std::span<const TokenId> history, Clock::Duration now) {
  const std::int32_t had = shared_ * services_->block_tokens;
  PrefixLease lease = services_->cache.take(use(now), history, static_cast<std::int32_t>(history.size()) - 1);
  if (lease.tokens() <= had) return {.tokens = had, .whole_tokens = had};
  services_->cache.record_hit(lease);
  const Reused reused{.tokens = lease.tokens(), .whole_tokens = lease.whole_tokens(), .copy_from = lease.partial()};
  exchange_first(lease.take_whole());
  return reused;
}

Reused SequenceLifecycle::adopt(const SequenceLifecycle& other, std::int32_t tokens) {
  const std::int32_t whole = tokens / services_->block_tokens;
  Reused reused{.tokens = tokens, .whole_tokens = whole * services_->block_tokens};
  if (tokens > reused.whole_tokens) reused.copy_from = other.blocks()[static_cast<std::size_t>(whole)];
  exchange_first(other.blocks_.share(whole));
  return reused;
}

void SequenceLifecycle::complete(std::span<const TokenId> tokens, Clock::Duration now) {
  if (plan_.prompt_cache) {
    services_->cache.put(use(now), tokens, std::move(blocks_));
  } else {
    blocks_.release();
  }
  shared_ = 0;
}

void SequenceLifecycle::drop() {
  blocks_.release();
  shared_ = 0;
}

}  // namespace linnet
