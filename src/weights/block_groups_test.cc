#include "weights/block_groups.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "weights/dequantize.h"
#include "weights/half.h"

namespace linnet {
namespace {

// Random codes; the halves at the block's front are scales (and minimums) of ordinary size, of both signs, and now and then 0.
std::vector<std::byte> random_block(const DTypeInfo& info, Rng& rng) {
  std::vector<std::byte> block(static_cast<std::size_t>(info.block_bytes));
  for (std::byte& byte : block) byte = static_cast<std::byte>(rng.below(256));
  const bool two = info.dtype != DType::kQ4_0 && info.dtype != DType::kQ5_0 && info.dtype != DType::kQ8_0;
  for (std::size_t at = 0; at < (two ? 4U : 2U); at += 2) {
    const float value = rng.chance(0.05) ? 0.0F : (static_cast<float>(rng.below(2001)) - 1000.0F) * 1e-3F;
    const std::uint16_t half = float_to_half(value);
    std::memcpy(block.data() + at, &half, sizeof half);
  }
  return block;
}

TEST(BlockGroups, SayWhatTheBlocksSay) {
  Rng rng(11);
  for (const DTypeInfo& info : dtypes()) {
    const std::optional<std::int32_t> bits = block_group_bits(info.dtype);
    if (!bits) continue;
    for (int repeat = 0; repeat < 200; ++repeat) {
      const std::vector<std::byte> block = random_block(info, rng);
      std::vector<float> expected(static_cast<std::size_t>(info.block_elements));
      dequantize_row(info.dtype, block.data(), info.block_elements, expected.data());
      std::vector<BlockGroup> groups(expected.size() / kBlockGroup);
      read_block_groups(info.dtype, block.data(), groups.data());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const BlockGroup& group = groups[i / kBlockGroup];
        const std::uint8_t code = group.codes[i % kBlockGroup];
        ASSERT_LT(code, 1 << *bits) << info.name;
        ASSERT_EQ(group.scale * static_cast<float>(code) + group.bias, expected[i]) << info.name << ", element " << i;
      }
    }
  }
}

// So that scales kept as halves lose nothing.
TEST(BlockGroups, ScalesOfLegacyFormatsAreHalves) {
  Rng rng(12);
  for (const DType dtype : {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0}) {
    for (int repeat = 0; repeat < 200; ++repeat) {
      BlockGroup group;
      read_block_groups(dtype, random_block(dtype_info(dtype), rng).data(), &group);
      EXPECT_EQ(half_to_float(float_to_half(group.scale)), group.scale) << dtype_name(dtype);
      EXPECT_EQ(half_to_float(float_to_half(group.bias)), group.bias) << dtype_name(dtype);
    }
  }
}

TEST(BlockGroups, OtherFormatsHaveNone) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ6_K}) EXPECT_FALSE(block_group_bits(dtype));
}

}  // namespace
}  // namespace linnet
