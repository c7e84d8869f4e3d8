#include "backends/mlx/kv_cache.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace linnet::mlx_backend {

Status LayerCache::trim(std::int64_t count) {
  if (!can_trim() || count < 0 || count > offset_) {
    return Error{ErrorCode::kInternal,
                 "a cache of " + std::to_string(offset_) + " tokens cannot be trimmed by " + std::to_string(count) +
                     (can_trim() ? "" : ": it is a full ring"),
                 ""};
  }
  offset_ -= static_cast<std::int32_t>(count);
  return {};
}

void LayerCache::append_state(std::vector<mx::array>& arrays) const {
  if (!held_) return;
  arrays.push_back(held_->keys);
  arrays.push_back(held_->values);
}

KeysValues LayerCache::zeros(const KeysValues& like, std::int32_t tokens) const {
  const auto of = [&](const mx::array& array) {
    mx::Shape shape = array.shape();
    shape[2] = tokens;
    return mx::zeros(shape, array.dtype(), device_);
  };
  return {of(like.keys), of(like.values)};
}

KeysValues LayerCache::joined(const KeysValues& first, const KeysValues& second) const {
  return {mx::concatenate({first.keys, second.keys}, 2, device_), mx::concatenate({first.values, second.values}, 2, device_)};
}

KeysValues LayerCache::part(const KeysValues& of, std::int32_t begin, std::int32_t end) const {
  const auto cut = [&](const mx::array& array) {
    mx::Shape stop = array.shape();
    stop[2] = end;
    return mx::slice(array, {0, 0, begin, 0}, stop, device_);
  };
  return {cut(of.keys), cut(of.values)};
}

void LayerCache::write(std::int32_t at, const KeysValues& what) {
  const auto placed = [&](const mx::array& into, const mx::array& update) {
    mx::Shape stop = into.shape();
    stop[2] = at + update.shape(2);
    return mx::slice_update(into, update, {0, 0, at, 0}, stop, device_);
  };
  held_ = KeysValues{placed(held_->keys, what.keys), placed(held_->values, what.values)};
}

KeysValues LayerCache::filled() const { return offset_ < length() ? part(*held_, 0, offset_) : *held_; }

KeysValues ContiguousCache::update(const mx::array& keys, const mx::array& values) {
  const KeysValues fresh{keys, values};
  const std::int32_t inputs = keys.shape(2);
  if (!held_ || offset_ + inputs > length()) {
    const KeysValues room = zeros(fresh, (kGrowth + inputs - 1) / kGrowth * kGrowth);
    if (held_) {
      held_ = joined(offset_ % kGrowth != 0 ? part(*held_, 0, offset_) : *held_, room);
    } else {
      held_ = room;
    }
  }
  write(offset_, fresh);
  offset_ += inputs;
  return filled();
}

AttentionMask ContiguousCache::mask(std::int32_t inputs) const {
  return {.mode = inputs == 1 ? "" : "causal", .allowed = std::nullopt};
}

KeysValues RingCache::update(const mx::array& keys, const mx::array& values) {
  const KeysValues fresh{keys, values};
  return keys.shape(2) == 1 ? append_one(fresh) : append_many(fresh);
}

KeysValues RingCache::append_one(const KeysValues& one) {
  if (!held_ || (offset_ >= length() && length() < max_size_)) {
    const KeysValues room = zeros(one, std::min(kGrowth, max_size_ - offset_));
    held_ = held_ ? joined(*held_, room) : room;
    next_ = offset_;
  }
  if (length() > max_size_) {  // append_many() left more
    held_ = part(*held_, length() - max_size_, length());
    next_ = max_size_;
  }
  if (next_ == max_size_) next_ = 0;
  write(next_, one);
  ++offset_;
  ++next_;
  return filled();
}

KeysValues RingCache::append_many(const KeysValues& many) {
  if (held_) {
    const KeysValues before = in_order();
    const std::int32_t have = before.keys.shape(2);
    const std::int32_t surplus = std::max(have - max_size_ + 1, 0);
    held_ = joined(surplus > 0 ? part(before, surplus, have) : before, many);
  } else {
    held_ = many;
  }
  offset_ += many.keys.shape(2);
  next_ = length();
  return *held_;
}

// Oldest first, without room that no token has filled.
KeysValues RingCache::in_order() const {
  if (next_ == length()) return *held_;
  if (next_ < offset_) return joined(part(*held_, next_, length()), part(*held_, 0, next_));
  return part(*held_, 0, next_);
}

AttentionMask RingCache::mask(std::int32_t inputs) const {
  if (inputs == 1) return {};
  const std::int32_t before = std::min(max_size_ - 1, offset_);
  if (before + inputs <= max_size_) return {.mode = "causal", .allowed = std::nullopt};
  const std::int32_t keys = before + inputs;
  std::vector<std::uint8_t> allowed(static_cast<std::size_t>(inputs) * static_cast<std::size_t>(keys));
  for (std::int32_t input = 0; input < inputs; ++input) {
    const std::int32_t position = before + input;
    for (std::int32_t key = 0; key < keys; ++key) {
      const auto at = static_cast<std::size_t>(input) * static_cast<std::size_t>(keys) + static_cast<std::size_t>(key);
      allowed[at] = key <= position && position < key + max_size_ ? 1 : 0;
    }
  }
  return {.mode = "", .allowed = mx::array(allowed.begin(), {inputs, keys}, mx::bool_)};
}

Status RingCache::trim(std::int64_t count) {
  LINNET_RETURN_IF_ERROR(LayerCache::trim(count));
  next_ -= static_cast<std::int32_t>(count);
  return {};
}

}  // namespace linnet::mlx_backend
