// Ring caches against mlx-lm's: what they hold, in which order, and what attention may see of it.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/mlx/kv_cache.h"
#include "goldens.h"

namespace linnet {
namespace {

using mlx_backend::AttentionMask;
using mlx_backend::RingCache;
namespace mx = mlx::core;

// "all", "causal", or rows of 0 and 1.
std::string text_of(const AttentionMask& mask) {
  if (!mask.allowed) return mask.mode.empty() ? "all" : mask.mode;
  mx::array allowed = *mask.allowed;
  allowed.eval();
  std::string text;
  for (int row = 0; row < allowed.shape(0); ++row) {
    if (row > 0) text += '/';
    for (int key = 0; key < allowed.shape(1); ++key) text += allowed.data<bool>()[row * allowed.shape(1) + key] ? '1' : '0';
  }
  return text;
}

std::vector<std::int32_t> content(const mx::array& keys) {
  mx::array flat = mx::astype(mx::flatten(keys, mx::Device::cpu), mx::int32, mx::Device::cpu);
  flat.eval();
  return {flat.data<std::int32_t>(), flat.data<std::int32_t>() + flat.size()};
}

TEST(Parity, RingsHoldWhatMlxLmsHold) {
  std::unique_ptr<RingCache> ring;
  int line_number = 0;
  for (const std::string& line : golden_lines("ring.txt")) {
    SCOPED_TRACE("ring.txt:" + std::to_string(++line_number) + ": " + line);
    const std::vector<std::string> words = split(line, ' ');
    const std::int32_t count = std::stoi(words.at(1));
    if (words[0] == "ring") {
      ring = std::make_unique<RingCache>(count, mx::Device(mx::Device::cpu));
      EXPECT_EQ(ring->ring_capacity(), count);
    } else if (words[0] == "trim") {
      EXPECT_TRUE(ring->trim(count).ok());
    } else {
      ASSERT_EQ(words[0], "feed");
      EXPECT_EQ(text_of(ring->mask(count)), words.at(2));
      const auto begin = static_cast<double>(ring->offset());
      const mx::array positions =
          mx::reshape(mx::arange(begin, begin + count, mx::float32, mx::Device::cpu), {1, 1, count, 1}, mx::Device::cpu);
      const mlx_backend::KeysValues seen = ring->update(positions, positions);
      EXPECT_EQ(content(seen.keys), numbers(words.at(3)));
      EXPECT_EQ(content(seen.values), numbers(words.at(3)));
      EXPECT_EQ(ring->can_trim(), words.at(4) == "1");
    }
  }
}

}  // namespace
}  // namespace linnet
