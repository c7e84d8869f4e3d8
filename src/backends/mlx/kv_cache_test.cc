#include "backends/mlx/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "linnet/status.h"
#include "speculation/rollback.h"
#include "weights/testing/is_error.h"

namespace linnet::mlx_backend {
namespace {

const mx::Device kCpu(mx::Device::cpu);

// Feeds tokens, each a number of its own; keys are the numbers, values their negatives. What attention then reads.
std::vector<std::int32_t> feed(LayerCache& cache, const std::vector<std::int32_t>& tokens) {
  const mx::array keys(tokens.begin(), {1, 1, static_cast<mx::ShapeElem>(tokens.size()), 1}, mx::float32);
  const KeysValues seen = cache.update(keys, mx::negative(keys, kCpu));
  const auto read = [](const mx::array& array) {
    mx::array flat = mx::astype(mx::flatten(array, kCpu), mx::int32, kCpu);
    flat.eval();
    return std::vector<std::int32_t>(flat.data<std::int32_t>(), flat.data<std::int32_t>() + flat.size());
  };
  std::vector<std::int32_t> values = read(seen.values);
  for (std::int32_t& value : values) value = -value;
  EXPECT_EQ(read(seen.keys), values);
  return values;
}

std::vector<std::int32_t> counted(std::int32_t first, std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// Random chunks, trims and clones against a plain list of tokens, over several growths of 256.
TEST(MlxKvCache, ContiguousHoldsWhatWasFedAndNotTrimmed) {
  Rng rng(1);
  std::unique_ptr<LayerCache> cache = std::make_unique<ContiguousCache>(kCpu);
  std::vector<std::int32_t> expected;
  std::int32_t next = 1;
  for (int turn = 0; turn < 120; ++turn) {
    if (rng.chance(0.2)) {
      const auto count = static_cast<std::int64_t>(rng.below(std::min<std::uint64_t>(expected.size(), 40) + 1));
      EXPECT_TRUE(cache->trim(count).ok());
      expected.resize(expected.size() - static_cast<std::size_t>(count));
    } else if (rng.chance(0.2)) {
      const std::unique_ptr<LayerState> other = cache->clone();
      std::unique_ptr<LayerCache> copy = cache->clone();
      feed(*copy, counted(100'000, 1 + rng.below(300)));  // must not reach the first
    } else {
      const std::size_t count = rng.chance(0.5) ? 1 : 1 + rng.below(90);
      EXPECT_EQ(cache->mask(static_cast<std::int32_t>(count)).mode, count == 1 ? "" : "causal");
      const std::vector<std::int32_t> tokens = counted(next, count);
      next += static_cast<std::int32_t>(count);
      expected.insert(expected.end(), tokens.begin(), tokens.end());
      ASSERT_EQ(feed(*cache, tokens), expected) << "turn " << turn;
    }
    ASSERT_EQ(cache->offset(), static_cast<std::int64_t>(expected.size()));
  }
  EXPECT_GT(expected.size(), 600U);
}

TEST(MlxKvCache, GrowsBy256Tokens) {
  ContiguousCache cache(kCpu);
  const auto room = [&] {
    std::vector<mx::array> state;
    cache.append_state(state);
    return state.at(0).shape(2);
  };
  feed(cache, counted(0, 3));
  EXPECT_EQ(room(), 256);
  feed(cache, counted(0, 253));
  EXPECT_EQ(room(), 256);
  feed(cache, counted(0, 1));
  EXPECT_EQ(room(), 512);
  feed(cache, counted(0, 300));  // 257 are kept, and room for 300 comes in steps of 256
  EXPECT_EQ(room(), 257 + 512);
}

TEST(MlxKvCache, TrimsOnlyWhatIsThere) {
  ContiguousCache cache(kCpu);
  feed(cache, counted(0, 5));
  EXPECT_TRUE(linnet::testing::is_error(cache.trim(6), ErrorCode::kInternal, {"5 tokens", "by 6"}));
  EXPECT_TRUE(linnet::testing::is_error(cache.trim(-1), ErrorCode::kInternal, {"by -1"}));
  EXPECT_EQ(cache.offset(), 5);
  RingCache ring(4, kCpu);
  feed(ring, counted(0, 3));
  EXPECT_TRUE(ring.trim(1).ok());
  feed(ring, counted(2, 2));
  EXPECT_FALSE(ring.can_trim());
  EXPECT_TRUE(linnet::testing::is_error(ring.trim(1), ErrorCode::kInternal, {"full ring"}));
}

// A ring's capacity is real: mlx-lm's own window, whatever the chunks, is the last max_size tokens before each input.
TEST(MlxKvCache, RingShowsEachInputItsWindow) {
  Rng rng(2);
  constexpr std::int32_t kSize = 6;
  for (int repeat = 0; repeat < 30; ++repeat) {
    RingCache ring(kSize, kCpu);
    std::int32_t next = 0;
    for (int turn = 0; turn < 12; ++turn) {
      const auto count = static_cast<std::int32_t>(1 + (rng.chance(0.5) ? 0 : rng.below(9)));
      AttentionMask mask = ring.mask(count);
      const std::vector<std::int32_t> seen = feed(ring, counted(next, static_cast<std::size_t>(count)));
      const auto keys = static_cast<std::int32_t>(seen.size());
      if (mask.allowed) mask.allowed->eval();
      for (std::int32_t input = 0; input < count; ++input) {
        std::vector<std::int32_t> window;
        for (std::int32_t key = 0; key < keys; ++key) {
          const bool causal = mask.mode == "causal" && key > keys - count + input;
          const bool allowed = mask.allowed ? mask.allowed->data<bool>()[input * keys + key] : !causal;
          if (allowed) window.push_back(seen[static_cast<std::size_t>(key)]);
        }
        std::sort(window.begin(), window.end());
        const std::int32_t first = std::max(next + input - kSize + 1, 0);
        ASSERT_EQ(window, counted(first, static_cast<std::size_t>(next + input + 1 - first))) << "input " << next + input;
      }
      next += count;
    }
  }
}

// As the contracts have it: what a transaction over these layers keeps.
TEST(MlxKvCache, TransactionsTakeRejectedInputsBack) {
  ContiguousCache whole(kCpu);
  RingCache ring(32, kCpu);
  LayerState* const layers[] = {&whole, &ring};
  Result<SpeculativeTransaction<std::int64_t>> bound = bind_cache_rollback(layers);
  ASSERT_TRUE(bound.ok());
  for (LayerCache* cache : {static_cast<LayerCache*>(&whole), static_cast<LayerCache*>(&ring)}) feed(*cache, counted(0, 10));
  ASSERT_TRUE(bound->begin(3).ok());
  for (LayerCache* cache : {static_cast<LayerCache*>(&whole), static_cast<LayerCache*>(&ring)}) feed(*cache, counted(10, 4));
  ASSERT_TRUE(bound->resolve(1).ok());
  EXPECT_EQ(whole.offset(), 12);
  EXPECT_EQ(ring.offset(), 12);
  EXPECT_EQ(feed(whole, {50}).at(12), 50);
  feed(ring, counted(12, 16));
  const Result<bool> fits = bound->can_begin(3);  // 28 + 3 + 1 is not below 32
  ASSERT_TRUE(fits.ok());
  EXPECT_FALSE(*fits);
}

}  // namespace
}  // namespace linnet::mlx_backend
