#include "backends/cpu/kernels/kv_write.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/kernel_set.h"
#include "backends/cpu/kv_blocks.h"
#include "weights/half.h"

namespace linnet::cpu {
namespace {

constexpr std::uint16_t kNanHalf = 0x7e01;

std::vector<std::pair<std::string, KvWrite>> writers() {
  std::vector<std::pair<std::string, KvWrite>> all;
  for (const KernelSet* set : runnable_kernel_sets()) all.emplace_back(set->name, set->kv_write);
  return all;
}

// Two layers of one sequence, full of NaN until something is written.
class Blocks {
 public:
  Blocks(const KvLayout& layout, std::int32_t tokens) : layout_(layout) {
    for (std::int32_t b = 0; b * kBlockTokens < tokens; ++b) storage_.emplace_back(layout.block_bytes() / 2, kNanHalf);
    for (auto& block : storage_) table_.push_back(reinterpret_cast<std::byte*>(block.data()));
  }
  std::byte* const* table() const { return table_.data(); }
  const std::vector<std::vector<std::uint16_t>>& storage() const { return storage_; }
  std::uint16_t k(std::int32_t layer, std::int32_t head, std::int32_t token, std::int32_t dim) const {
    return at(token, layout_.offset(layer, head) / 2 + layout_.k_index(token % kBlockTokens, dim));
  }
  std::uint16_t v(std::int32_t layer, std::int32_t head, std::int32_t token, std::int32_t dim) const {
    return at(token, (layout_.offset(layer, head) + layout_.half_bytes()) / 2 + KvLayout::v_index(token % kBlockTokens, dim));
  }

 private:
  std::uint16_t at(std::int32_t token, std::size_t index) const {
    return storage_[static_cast<std::size_t>(token / kBlockTokens)][index];
  }
  KvLayout layout_;
  std::vector<std::vector<std::uint16_t>> storage_;
  std::vector<std::byte*> table_;
};

struct Rows {
  std::vector<float> values;
  std::int64_t stride;
  const float* at(std::int32_t token) const { return values.data() + token * stride; }
};

Rows random_rows(const KvLayout& layout, std::int32_t tokens, std::uint32_t seed) {
  Rows rows;
  rows.stride = std::int64_t{layout.kv_heads} * layout.head_dim + 5;  // lines need no alignment
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  rows.values.resize(static_cast<std::size_t>(tokens * rows.stride));
  for (float& x : rows.values) x = normal(rng) * std::ldexp(1.0F, static_cast<int>(rng() % 40) - 28);  // subnormal halves as well
  return rows;
}

struct Write {
  std::int32_t layer = 1;
  std::int32_t position = 0;
  std::int32_t count = 0;
};

bool write(KvWrite writer, const KvLayout& layout, const Blocks& blocks, const Rows& k, const Rows& v, Write w) {
  return writer({.k = k.at(w.position),
                 .k_stride = k.stride,
                 .v = v.at(w.position),
                 .v_stride = v.stride,
                 .blocks = blocks.table(),
                 .layer_offset = layout.offset(w.layer, 0),
                 .kv_heads = layout.kv_heads,
                 .head_dim = layout.head_dim,
                 .position = w.position,
                 .count = w.count});
}

TEST(KvWrite, PutsEveryNumberInItsPlaceForEveryChunking) {
  for (const std::int32_t dim : {16, 32, 64, 96, 128, 256}) {
    const KvLayout layout{.layers = 2, .kv_heads = 2, .head_dim = dim};
    const std::int32_t tokens = 117;
    const Rows k = random_rows(layout, tokens, 1);
    const Rows v = random_rows(layout, tokens, 2);
    for (const auto& [name, writer] : writers()) {
      for (const std::int32_t chunk : {1, 5, 15, 16, 17, 32, 33, 117}) {
        const Blocks blocks(layout, tokens);
        for (std::int32_t p = 0; p < tokens; p += chunk) {
          ASSERT_TRUE(write(writer, layout, blocks, k, v, {.position = p, .count = std::min(chunk, tokens - p)}));
        }
        for (std::int32_t t = 0; t < 128; ++t) {
          for (std::int32_t h = 0; h < layout.kv_heads; ++h) {
            for (std::int32_t d = 0; d < dim; ++d) {
              const bool written = t < tokens;  // else: zeroed with the first token of its block
              ASSERT_EQ(blocks.k(1, h, t, d), written ? float_to_half(k.at(t)[h * dim + d]) : 0)
                  << name << ' ' << chunk << ' ' << t;
              ASSERT_EQ(blocks.v(1, h, t, d), written ? float_to_half(v.at(t)[h * dim + d]) : 0)
                  << name << ' ' << chunk << ' ' << t;
              ASSERT_EQ(blocks.k(0, h, t, d), kNanHalf) << "the other layer";
              ASSERT_EQ(blocks.v(0, h, t, d), kNanHalf) << "the other layer";
            }
          }
        }
      }
    }
  }
}

TEST(KvWrite, WritingAgainAfterARollBackLeavesEarlierTokens) {
  const KvLayout layout{.layers = 2, .kv_heads = 1, .head_dim = 64};
  const Rows k = random_rows(layout, 64, 3);
  const Rows v = random_rows(layout, 64, 4);
  for (const auto& [name, writer] : writers()) {
    const Blocks once(layout, 64);
    const Blocks again(layout, 64);
    ASSERT_TRUE(write(writer, layout, once, k, v, {.position = 0, .count = 40}));
    ASSERT_TRUE(write(writer, layout, again, v, k, {.position = 0, .count = 50}));
    ASSERT_TRUE(write(writer, layout, again, k, v, {.position = 0, .count = 20}));
    ASSERT_TRUE(write(writer, layout, again, k, v, {.position = 20, .count = 20}));
    EXPECT_EQ(once.storage(), again.storage()) << name;
  }
}

TEST(KvWrite, ReportsWhatIsNotFiniteAndStoresZero) {
  const KvLayout layout{.layers = 2, .kv_heads = 2, .head_dim = 64};
  const float bad_values[] = {NAN, -NAN, std::bit_cast<float>(0x7fffffffU), INFINITY, -INFINITY, 65520.0F, -1e30F};
  for (const auto& [name, writer] : writers()) {
    for (const float bad : bad_values) {
      for (const bool in_k : {true, false}) {
        for (const std::int32_t token : {0, 15, 16, 34}) {
          Rows k = random_rows(layout, 48, 5);
          Rows v = random_rows(layout, 48, 6);
          (in_k ? k : v).values[static_cast<std::size_t>(token * k.stride + 64 + 37)] = bad;
          const Blocks blocks(layout, 48);
          EXPECT_FALSE(write(writer, layout, blocks, k, v, {.position = 0, .count = 35})) << name << ' ' << bad << ' ' << token;
          EXPECT_EQ(in_k ? blocks.k(1, 1, token, 37) : blocks.v(1, 1, token, 37), 0) << name << ' ' << bad << ' ' << token;
          for (const auto& block : blocks.storage()) {
            for (std::size_t i = layout.layer_bytes() / 2; i < block.size(); ++i) ASSERT_LT(block[i] & 0x7fffU, 0x7c00U);
          }
        }
      }
    }
    Rows k = random_rows(layout, 1, 7);
    k.values[3] = 65519.0F;
    k.values[4] = -65504.0F;
    const Blocks blocks(layout, 1);
    EXPECT_TRUE(write(writer, layout, blocks, k, k, {.position = 0, .count = 1})) << name;
    EXPECT_EQ(blocks.k(1, 0, 0, 3), 0x7bff);
  }
}

}  // namespace
}  // namespace linnet::cpu
