#include "backends/cpu/kv_blocks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "backends/cpu/pool.h"

namespace linnet::cpu {
namespace {

TEST(KvLayout, GivesEveryNumberAPlaceOfItsOwn) {
  const KvLayout layout{.layers = 3, .kv_heads = 2, .head_dim = 96};
  std::set<std::size_t> places;
  for (std::int32_t layer = 0; layer < layout.layers; ++layer) {
    for (std::int32_t head = 0; head < layout.kv_heads; ++head) {
      for (std::int32_t token = 0; token < kBlockTokens; ++token) {
        for (std::int32_t dim = 0; dim < layout.head_dim; ++dim) {
          places.insert(layout.offset(layer, head) + 2 * layout.k_index(token, dim));
          places.insert(layout.offset(layer, head) + layout.half_bytes() + 2 * KvLayout::v_index(token, dim));
        }
      }
    }
  }
  EXPECT_EQ(places.size(), static_cast<std::size_t>(3 * 2 * 2 * 32 * 96));
  EXPECT_EQ(*places.rbegin(), layout.block_bytes() - 2);
  EXPECT_EQ(layout.token_bytes(), std::size_t{3 * 2 * 2 * 96 * 2});
}

TEST(KvPool, BlocksAreDisjointZeroedAndAligned) {
  const KvLayout layout{.layers = 2, .kv_heads = 3, .head_dim = 64};
  auto made = KvPool::create(layout, 100);
  ASSERT_TRUE(made.ok());
  KvPool pool = std::move(made).value();
  Pool threads({.threads = 2});
  EXPECT_GE(pool.touch(threads, std::chrono::seconds(10)), layout.block_bytes() * 100);
  ASSERT_EQ(pool.block_count(), 100);
  for (std::int32_t i = 0; i < 100; ++i) {
    std::byte* const block = pool.block(BlockId{static_cast<std::uint32_t>(i)});
    EXPECT_EQ(block, pool.blocks()[static_cast<std::size_t>(i)]);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U);
    for (std::size_t k = 0; k < layout.block_bytes(); ++k) ASSERT_EQ(block[k], std::byte{0});
    std::memset(block, i + 1, layout.block_bytes());
  }
  for (std::int32_t i = 0; i < 100; ++i) {
    const std::byte* const block = pool.block(BlockId{static_cast<std::uint32_t>(i)});
    EXPECT_EQ(block[0], static_cast<std::byte>(i + 1));
    EXPECT_EQ(block[layout.block_bytes() - 1], static_cast<std::byte>(i + 1));
  }
  // Touching keeps what is there; without time it does nothing.
  EXPECT_GT(pool.touch(threads, std::chrono::seconds(10)), 0U);
  EXPECT_EQ(pool.block(BlockId{7})[5], std::byte{8});
  EXPECT_EQ(pool.touch(threads, std::chrono::nanoseconds(0)), 0U);
}

TEST(KvPool, RefusesWhatTheSystemCantGive) {
  const KvLayout layout{.layers = 1000, .kv_heads = 1000, .head_dim = 1024};
  const auto made = KvPool::create(layout, 2'000'000'000);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::kTooLarge);
  EXPECT_NE(made.error().message.find("--context"), std::string::npos) << made.error().message;
}

TEST(Region, MovesAndReportsItsSize) {
  auto made = Region::reserve(5000, "a test");
  ASSERT_TRUE(made.ok());
  Region a = std::move(made).value();
  EXPECT_GE(a.size(), 5000U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % (2U << 20), 0U);
  a.data()[4999] = std::byte{1};
  Region b = std::move(a);
  EXPECT_EQ(b.data()[4999], std::byte{1});
  EXPECT_EQ(a.data(), nullptr);
  a = std::move(b);
  EXPECT_EQ(a.data()[4999], std::byte{1});
  EXPECT_FALSE(Region::reserve(0, "a test").ok());
  EXPECT_FALSE(Region::reserve(~std::size_t{0}, "a test").ok());
}

TEST(Carver, CountsThenCuts) {
  Carver counter(nullptr);
  EXPECT_EQ(counter.take<float>(3), nullptr);
  counter.take<char>(65);
  EXPECT_EQ(counter.size(), 192U);
  alignas(64) std::byte buffer[192];
  Carver carver(buffer);
  EXPECT_EQ(static_cast<void*>(carver.take<float>(3)), static_cast<void*>(buffer));
  EXPECT_EQ(static_cast<void*>(carver.take<char>(65)), static_cast<void*>(buffer + 64));
}

}  // namespace
}  // namespace linnet::cpu
