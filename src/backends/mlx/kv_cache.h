// One layer's keys and values of one sequence, kept as mlx-lm keeps them: the reference path's own caches.
#pragma once

#include <mlx/mlx.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "linnet/status.h"
#include "speculation/layer_state.h"

namespace linnet::mlx_backend {

namespace mx = mlx::core;

struct KeysValues {
  mx::array keys;    // [1, KV heads, tokens, head_dim]
  mx::array values;  // as keys
};

// What attention may see: all that came before ("causal"), an array of which key each input may see, or everything ("").
struct AttentionMask {
  std::string mode;
  std::optional<mx::array> allowed;  // [inputs, keys], bool
};

// What a verify round can take back by trimming. Belongs to the engine's thread, as its arrays do. Graphs are built, not run: the
// arrays are evaluated with the step.
class LayerCache : public LayerState {
 public:
  explicit LayerCache(mx::Device device) : device_(device) {}
  virtual std::unique_ptr<LayerCache> clone() const = 0;

  // Appends keys and values of the next inputs; returns what attention reads.
  virtual KeysValues update(const mx::array& keys, const mx::array& values) = 0;
  // For the next `inputs` inputs, before update().
  virtual AttentionMask mask(std::int32_t inputs) const = 0;
  std::int64_t offset() const override { return offset_; }
  bool can_trim() const override { return true; }
  Status trim(std::int64_t count) override;
  // The arrays that a later update() starts from.
  void append_state(std::vector<mx::array>& arrays) const;

 protected:
  static constexpr std::int32_t kGrowth = 256;  // tokens

  std::int32_t length() const { return held_ ? held_->keys.shape(2) : 0; }  // tokens that the arrays have room for
  KeysValues zeros(const KeysValues& like, std::int32_t tokens) const;
  KeysValues joined(const KeysValues& first, const KeysValues& second) const;
  KeysValues part(const KeysValues& of, std::int32_t begin, std::int32_t end) const;
  void write(std::int32_t at, const KeysValues& what);  // into held_
  KeysValues filled() const;                            // held_, without what no token has filled

  mx::Device device_;
  std::optional<KeysValues> held_;
  std::int32_t offset_ = 0;
};

// Everything, in one array that grows by kGrowth tokens.
class ContiguousCache final : public LayerCache {
 public:
  using LayerCache::LayerCache;

  std::unique_ptr<LayerCache> clone() const override { return std::make_unique<ContiguousCache>(*this); }
  KeysValues update(const mx::array& keys, const mx::array& values) override;
  AttentionMask mask(std::int32_t inputs) const override;
};

// The last `max_size` tokens, in place once they are reached. Several inputs at once find max_size - 1 tokens before the first of
// them.
class RingCache final : public LayerCache {
 public:
  RingCache(std::int32_t max_size, mx::Device device) : LayerCache(device), max_size_(max_size) {}

  std::unique_ptr<LayerCache> clone() const override { return std::make_unique<RingCache>(*this); }
  KeysValues update(const mx::array& keys, const mx::array& values) override;
  AttentionMask mask(std::int32_t inputs) const override;
  std::optional<std::int64_t> ring_capacity() const override { return max_size_; }
  bool can_trim() const override { return offset_ < max_size_; }  // later, what was overwritten is gone
  Status trim(std::int64_t count) override;

 private:
  KeysValues append_one(const KeysValues& one);
  KeysValues append_many(const KeysValues& many);
  KeysValues in_order() const;

  std::int32_t max_size_;
  std::int32_t next_ = 0;  // where the next token goes
};

}  // namespace linnet::mlx_backend
