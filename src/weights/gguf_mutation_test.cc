// Damaged files: whatever the damage, opening ends with a model or an error, and reads nothing outside of the file.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "weights/dequantize.h"
#include "weights/gguf.h"
#include "weights/gguf_model.h"
#include "weights/model_file.h"
#include "weights/testing/tiny_llama.h"

namespace linnet {
namespace {

constexpr int kMutations = 20'000;

// Numbers that readers trip over.
constexpr std::uint64_t kNasty[] = {0,
                                    1,
                                    0x7F,
                                    0x80,
                                    0xFF,
                                    0x7FFFFFFF,
                                    0x80000000,
                                    0xFFFFFFFF,
                                    0x100000000,
                                    0x7FFFFFFFFFFFFFFF,
                                    0x8000000000000000,
                                    0xFFFFFFFFFFFFFFF8,
                                    0xFFFFFFFFFFFFFFFF};

// The tables are where the damage is interesting: three of four hits go to the first `tables` bytes.
void mutate(std::vector<std::byte>& bytes, std::size_t tables, Rng& rng) {
  const std::uint64_t hits = 1 + rng.below(3);
  for (std::uint64_t hit = 0; hit < hits && !bytes.empty(); ++hit) {
    const std::size_t limit = rng.chance(0.75) && tables < bytes.size() ? tables : bytes.size();
    const std::size_t at = rng.below(limit);
    switch (rng.below(5)) {
      case 0:
        bytes[at] ^= static_cast<std::byte>(1U << rng.below(8));
        break;
      case 1:
        bytes[at] = static_cast<std::byte>(rng.below(256));
        break;
      case 2: {
        const std::uint64_t value = kNasty[rng.below(std::size(kNasty))];
        const std::size_t size = std::min<std::size_t>(rng.chance(0.5) ? 8 : 4, bytes.size() - at);
        std::memcpy(bytes.data() + at, &value, size);
        break;
      }
      case 3:
        bytes.resize(at);
        break;
      default: {  // a piece from elsewhere
        const std::size_t from = rng.below(bytes.size());
        const std::size_t size = std::min<std::size_t>(1 + rng.below(64), bytes.size() - std::max(at, from));
        std::memmove(bytes.data() + at, bytes.data() + from, size);
      }
    }
  }
}

// Touches all that a loader would.
std::size_t use(const ModelFile& model) {
  std::size_t used = model.chat_template().size() + model.generation().end_tokens.size();
  std::vector<float> row;
  for (const GgufTensor& tensor : model.gguf()->tensors()) {
    const Result<Tensor> matrix = model.gguf()->matrix(tensor);
    if (!matrix.ok()) continue;
    row.resize(static_cast<std::size_t>(matrix->cols));
    dequantize_row(matrix->dtype, matrix->row(matrix->rows - 1), matrix->cols, row.data());
    used += row.size();
  }
  return used;
}

TEST(GgufMutation, OpeningNeverBreaks) {
  testing::TinyLlama options;
  options.layers = 1;
  options.hidden = 32;
  options.intermediate = 32;
  options.heads = 1;
  options.kv_heads = 1;
  options.vocabulary = 260;
  options.rope_divisors = true;
  const std::vector<std::byte> good = testing::tiny_llama_gguf(options);
  std::size_t tables = good.size();
  {
    const Result<GgufFile> file = GgufFile::parse(good, "good");
    ASSERT_TRUE(file.ok());
    tables = static_cast<std::size_t>(file->tensors()[0].data.data() - good.data());
  }
  int opened = 0;
  std::size_t used = 0;
  for (int i = 0; i < kMutations; ++i) {
    Rng rng(static_cast<std::uint64_t>(i));
    std::vector<std::byte> bytes = good;
    mutate(bytes, tables, rng);
    const std::vector<std::byte> exact(bytes.begin(), bytes.end());
    Result<GgufFile> file = GgufFile::parse(exact, "mutated");
    if (!file.ok()) {
      ASSERT_FALSE(file.error().message.empty()) << "seed " << i;
      continue;
    }
    std::vector<GgufFile> files;
    files.push_back(std::move(file).value());
    Result<ModelParts> parts = read_gguf_model(std::move(files));
    if (!parts.ok()) {
      ASSERT_EQ(parts.error().message.substr(0, 9), "mutated: ") << "seed " << i;
      continue;
    }
    ++opened;
    used += use(ModelFile(std::move(parts).value()));
  }
  // Damage to weights and texts is not seen here; damage to tables mostly is.
  EXPECT_GT(opened, kMutations / 20);
  EXPECT_LT(opened, kMutations * 3 / 4);
  EXPECT_GT(used, 0U);
}

}  // namespace
}  // namespace linnet
