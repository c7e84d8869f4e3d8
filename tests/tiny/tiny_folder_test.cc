// Folders of Hugging Face and mlx-lm on the CPU backend against the reference path, which equals mlx-lm.
#include "weights/testing/tiny_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/executor.h"
#include "backends/mlx/executor.h"
#include "sequence_driver.h"
#include "weights/model_file.h"

namespace linnet {
namespace {

struct FolderVariant {
  std::string name;
  testing::TinyFolder folder;
  double error_max = 1e-3;  // relative to the size of a token's logits
};

// Float32 throughout, but for codes: the reference rounds nothing else then, the CPU backend activations to 16 bits and KV to
// f16.
testing::TinyFolder exact(testing::TinyFolder folder) {
  folder.shape.layer_dtype = folder.shape.embedding_dtype = DType::kF32;
  folder.scales = DType::kF32;
  return folder;
}

std::vector<FolderVariant> folder_variants() {
  std::vector<FolderVariant> all;
  for (const std::int32_t bits : {2, 3, 4, 5, 6, 8}) {
    for (const std::int32_t group : {32, 64, 128}) {
      const testing::TinyLlama shape{.hidden = 128, .intermediate = 256, .heads = 4, .kv_heads = 2};
      all.push_back({"Bits" + std::to_string(bits) + "Group" + std::to_string(group),
                     exact({.shape = shape, .bits = bits, .group = group})});
    }
  }
  all.push_back({"PlainFloat32", exact({})});
  all.push_back({"Biases", exact({.bits = 4, .attention_bias = true, .mlp_bias = true})});
  all.push_back({"Shards", exact({.bits = 8, .shards = 3})});
  all.push_back({"PlainEmbedding", exact({.bits = 4, .quantize_embedding = false})});
  all.push_back({"RopeLinear", exact({.config = R"({"rope_scaling":{"rope_type":"linear","factor":4.0}})"})});
  all.push_back({"RopeLlama3", exact({.config = R"({"rope_scaling":{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,)"
                                                R"("high_freq_factor":4.0,"original_max_position_embeddings":64}})"})});
  // The reference computes in bf16 here, as mlx-lm does: several hundred times coarser than what it is compared with.
  all.push_back({"Bfloat16", {}, 0.1});
  all.push_back({"Bits4InBfloat16", {.bits = 4}, 0.1});
  return all;
}

class TinyFolderModel : public ::testing::TestWithParam<FolderVariant> {};

std::vector<std::vector<float>> logits_of(SequenceDriver driver, std::span<const TokenId> tokens) {
  std::vector<DrivenSequence> sequence{{.prompt_count = static_cast<std::int32_t>(tokens.size())}};
  driver.assign_blocks(sequence, 1);
  return driver.feed(sequence[0], tokens, 8);
}

// Of the worst token, relative to the size of its logits.
double error_of(const std::vector<std::vector<float>>& ours, const std::vector<std::vector<float>>& reference) {
  double worst = 0;
  for (std::size_t t = 0; t < reference.size(); ++t) {
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < reference[t].size(); ++i) {
      const double expected = static_cast<double>(reference[t][i]);
      difference += std::pow(static_cast<double>(ours[t][i]) - expected, 2);
      size += expected * expected;
    }
    worst = std::max(worst, std::sqrt(difference / size));
  }
  return worst;
}

TEST_P(TinyFolderModel, CpuLogitsAreThoseOfTheReferencePath) {
  const testing::TempFolder folder = testing::tiny_llama_folder(GetParam().folder);
  const Result<std::unique_ptr<ModelFile>> file = open_model_file(folder.path());
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto reference =
      mlx_backend::MlxExecutor::create(**file, {.device = DeviceKind::kCpu, .rows_max = 8, .memory_budget_bytes = 1U << 28});
  ASSERT_TRUE(reference.ok()) << reference.error().message;
  std::vector<TokenId> tokens;
  for (std::int32_t i = 0; i < 40; ++i) tokens.push_back(static_cast<TokenId>(i * 37 % (*file)->config().vocabulary));
  const std::vector<std::vector<float>> expected = logits_of(SequenceDriver(**reference), tokens);
  for (const cpu::KernelSet* const kernels : cpu::runnable_kernel_sets()) {
    const auto executor = cpu::CpuExecutor::create(
        **file, {.threads = 2, .kernels = kernels, .rows_max = 8, .tokens_max = 64, .memory_budget_bytes = 1U << 28});
    ASSERT_TRUE(executor.ok()) << executor.error().message;
    EXPECT_LT(error_of(logits_of(SequenceDriver(**executor), tokens), expected), GetParam().error_max) << kernels->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, TinyFolderModel, ::testing::ValuesIn(folder_variants()),
                         [](const ::testing::TestParamInfo<FolderVariant>& variant) { return variant.param.name; });

}  // namespace
}  // namespace linnet
