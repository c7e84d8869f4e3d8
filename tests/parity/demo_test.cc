// The demo model on the reference path against mlx-lm, which read the same numbers from a folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/mlx/executor.h"
#include "backends/mlx/weight_loader.h"
#include "base/memory_budget.h"
#include "goldens.h"
#include "hub/local_models.h"
#include "reference.h"
#include "weights/model_file.h"

namespace linnet {
namespace {

using mlx_backend::MlxExecutor;

std::uint32_t checksum(const mlx_backend::mx::array& array, std::uint32_t seed) {
  return crc32({array.data<std::byte>(), array.nbytes()}, seed);
}

std::uint32_t checksum(const mlx_backend::Matrix& matrix) {
  std::uint32_t value = checksum(matrix.weight, 0);
  if (matrix.scales) value = checksum(*matrix.biases, checksum(*matrix.scales, value));
  return value;
}

// By module, of all that a llama of this configuration reads.
std::map<std::string, std::uint32_t> array_checksums(const ModelFile& file) {
  const ModelConfig& config = file.config();
  MemoryLeft memory(std::uint64_t{1} << 30U);
  mlx_backend::WeightLoader loader(file, memory);
  std::map<std::string, std::uint32_t> sums;
  const auto norm = [&](const std::string& name) {
    sums[name] = checksum(loader.norm(name + ".weight", config.hidden)->weight, 0);
  };
  const auto linear = [&](const std::string& name, std::int64_t rows, std::int64_t cols) {
    sums[name] = checksum(*loader.linear(name, rows, cols));
  };
  const std::int64_t q = std::int64_t{config.heads} * config.head_dim;
  const std::int64_t kv = std::int64_t{config.kv_heads} * config.head_dim;
  sums["model.embed_tokens"] = checksum(*loader.embedding("model.embed_tokens.weight", config.vocabulary, config.hidden));
  for (std::int32_t layer = 0; layer < config.layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    norm(at + "input_layernorm");
    norm(at + "post_attention_layernorm");
    linear(at + "self_attn.q_proj", q, config.hidden);
    linear(at + "self_attn.k_proj", kv, config.hidden);
    linear(at + "self_attn.v_proj", kv, config.hidden);
    linear(at + "self_attn.o_proj", config.hidden, q);
    linear(at + "mlp.gate_proj", config.intermediate, config.hidden);
    linear(at + "mlp.up_proj", config.intermediate, config.hidden);
    linear(at + "mlp.down_proj", config.hidden, config.intermediate);
  }
  norm("model.norm");
  return sums;
}

class ParityOfTheDemo : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* given = std::getenv("LINNET_DEMO_MODEL");
    const Result<std::string> path = given != nullptr ? Result<std::string>(given) : resolve_model("demo");
    ASSERT_TRUE(path.ok()) << "the demo model is missing: run `make test`, or `linnet get demo`";
    file_ = open_model(*path);
    ASSERT_NE(file_, nullptr);
  }

  const GoldenDemo golden_ = golden_demo();
  std::unique_ptr<ModelFile> file_;
};

TEST_F(ParityOfTheDemo, BlocksBecomeTheFoldersArrays) { EXPECT_EQ(array_checksums(*file_), golden_.arrays); }

TEST_F(ParityOfTheDemo, TwelveTokensAndFourAreMlxLms) {
  const std::unique_ptr<MlxExecutor> executor = load_reference(*file_);
  ASSERT_NE(executor, nullptr);
  const auto width = static_cast<std::ptrdiff_t>(executor->info().vocabulary);
  const auto last_row = [&](const std::vector<float>& logits) { return std::vector<float>(logits.end() - width, logits.end()); };
  std::vector<std::uint32_t> checksums;
  std::vector<TokenId> decoded;
  std::vector<float> logits = last_row(run_one(*executor, {.sequence = 1, .tokens = golden_.prompt}));
  auto position = static_cast<std::int32_t>(golden_.prompt.size());
  for (std::size_t step = 0;; ++step) {
    checksums.push_back(crc32(std::as_bytes(std::span(logits))));
    if (step == golden_.decoded.size()) break;
    decoded.push_back(static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    logits = run_one(*executor, {.sequence = 1, .position = position++, .tokens = {&decoded.back(), 1}});
  }
  EXPECT_EQ(decoded, golden_.decoded);
  EXPECT_EQ(checksums, golden_.logits) << provenance();
}

}  // namespace
}  // namespace linnet
