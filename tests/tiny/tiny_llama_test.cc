// Llama models with random weights on both backends: against double precision, and against themselves in every company.
#include "weights/testing/tiny_llama.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/executor.h"
#include "backends/mlx/executor.h"
#include "reference_llama.h"
#include "sequence_driver.h"
#include "weights/model_file.h"

namespace linnet {
namespace {

struct Variant {
  std::string name;
  testing::TinyLlama model;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0}) {
    all.push_back({std::string(dtype_name(dtype)), {.layer_dtype = dtype, .embedding_dtype = dtype}});
  }
  for (const DType dtype : {DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    all.push_back({std::string(dtype_name(dtype)),
                   {.hidden = 256, .intermediate = 512, .heads = 8, .layer_dtype = dtype, .embedding_dtype = DType::kQ6_K}});
  }
  all.push_back({"HeadOfItsOwn", {.tied = false}});
  all.push_back({"RopeDivisors", {.rope_divisors = true, .rope_theta = 500000.0F}});
  all.push_back({"OneKvHead", {.heads = 6, .kv_heads = 1}});
  all.push_back({"NoGroups", {.heads = 2, .kv_heads = 2, .head_dim = 64}});
  all.push_back({"Biases", {.intermediate = 160, .biases = true}});
  all.push_back({"OddVocabulary", {.vocabulary = 331}});
  for (Variant& variant : all) variant.model.context = 2048;
  return all;
}

std::unique_ptr<ModelFile> open(const Variant& variant, const testing::TempFile& file) {
  Result<std::unique_ptr<ModelFile>> opened = open_model_file(file.path());
  EXPECT_TRUE(opened.ok()) << variant.name << ": " << opened.error().message;
  return *std::move(opened);
}

std::unique_ptr<cpu::CpuExecutor> load(const ModelFile& file, const cpu::KernelSet& kernels, int threads) {
  Result<std::unique_ptr<cpu::CpuExecutor>> executor = cpu::CpuExecutor::create(
      file, {.threads = threads, .kernels = &kernels, .rows_max = 8, .tokens_max = 128, .memory_budget_bytes = 1U << 28});
  EXPECT_TRUE(executor.ok()) << executor.error().message;
  return *std::move(executor);
}

std::unique_ptr<mlx_backend::MlxExecutor> load_mlx(const ModelFile& file) {
  Result<std::unique_ptr<mlx_backend::MlxExecutor>> executor =
      mlx_backend::MlxExecutor::create(file, {.device = DeviceKind::kCpu, .rows_max = 8, .memory_budget_bytes = 1U << 28});
  EXPECT_TRUE(executor.ok()) << executor.error().message;
  return *std::move(executor);
}

DrivenSequence random_sequence(const ModelFile& file, std::int32_t prompt, std::int32_t generate, std::int32_t chunk,
                               std::uint64_t seed) {
  std::mt19937_64 random(seed);
  DrivenSequence sequence{.prompt_count = prompt, .chunk = chunk, .generate = generate};
  for (std::int32_t i = 0; i < prompt; ++i) {
    sequence.tokens.push_back(static_cast<TokenId>(random() % static_cast<std::uint64_t>(file.config().vocabulary)));
  }
  return sequence;
}

class TinyLlama : public ::testing::TestWithParam<Variant> {};

// Of the worst token, relative to the size of its logits.
double worst_error(const ModelFile& file, const DrivenSequence& sequence) {
  const std::vector<std::vector<double>> expected =
      reference_logits(file, std::span(sequence.tokens).first(sequence.tokens.size() - 1));
  double worst = 0;
  for (std::size_t t = 0; t < sequence.logits.size(); ++t) {
    const std::vector<double>& reference = expected[static_cast<std::size_t>(sequence.prompt_count) - 1 + t];
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < reference.size(); ++i) {
      error += std::pow(sequence.logits[t][i] - reference[i], 2);
      size += reference[i] * reference[i];
    }
    worst = std::max(worst, std::sqrt(error / size));
  }
  return worst;
}

TEST_P(TinyLlama, LogitsAreThoseOfDoublePrecision) {
  const testing::TempFile path = testing::tiny_llama_file(GetParam().model);
  const std::unique_ptr<ModelFile> file = open(GetParam(), path);
  for (const cpu::KernelSet* kernels : cpu::runnable_kernel_sets()) {
    const std::unique_ptr<cpu::CpuExecutor> executor = load(*file, *kernels, 2);
    std::vector<DrivenSequence> one{random_sequence(*file, 40, 6, 0, 7)};
    SequenceDriver(*executor).run(one);
    EXPECT_LT(worst_error(*file, one[0]), 1.5e-3) << kernels->name;
  }
}

// In the reference path GGUF's blocks lose nothing: what is left is float32 arithmetic (or that of 16 bits, if the file has
// them).
TEST_P(TinyLlama, MlxLogitsAreThoseOfDoublePrecision) {
  const testing::TempFile path = testing::tiny_llama_file(GetParam().model);
  const std::unique_ptr<ModelFile> file = open(GetParam(), path);
  const std::unique_ptr<mlx_backend::MlxExecutor> executor = load_mlx(*file);
  std::vector<DrivenSequence> one{random_sequence(*file, 40, 6, 0, 7)};
  SequenceDriver(*executor).run(one);
  const DType type = GetParam().model.embedding_dtype;
  const double tolerance = type == DType::kBF16 ? 3e-2 : type == DType::kF16 ? 4e-3 : 2e-6;
  EXPECT_LT(worst_error(*file, one[0]), tolerance);
}

// What stock MLX gives on CPUs: rows alone, and chunks as well.
TEST_P(TinyLlama, MlxBitsDoNotDependOnCompanyAndChunks) {
  const testing::TempFile path = testing::tiny_llama_file(GetParam().model);
  const std::unique_ptr<ModelFile> file = open(GetParam(), path);
  const std::unique_ptr<mlx_backend::MlxExecutor> executor = load_mlx(*file);
  std::vector<DrivenSequence> alone{random_sequence(*file, 70, 3, 0, 5)};
  SequenceDriver(*executor).run(alone);
  std::vector<DrivenSequence> together;
  for (const std::int32_t chunk : {0, 1, 7, 64}) together.push_back(random_sequence(*file, 70, 3, chunk, 5));
  SequenceDriver(*executor).run(together);
  for (const DrivenSequence& sequence : together) {
    EXPECT_EQ(sequence.tokens, alone[0].tokens);
    EXPECT_EQ(sequence.logits, alone[0].logits) << "chunks of " << sequence.chunk;
  }
}

TEST_P(TinyLlama, BitsDoNotDependOnCompanyChunksAndThreads) {
  const testing::TempFile path = testing::tiny_llama_file(GetParam().model);
  const std::unique_ptr<ModelFile> file = open(GetParam(), path);
  const std::int32_t prompts[] = {1, 33, 600, 1500};
  for (const cpu::KernelSet* kernels : cpu::runnable_kernel_sets()) {
    std::vector<DrivenSequence> alone;
    const std::unique_ptr<cpu::CpuExecutor> executor = load(*file, *kernels, 1);
    for (const std::int32_t prompt : prompts) {
      std::vector<DrivenSequence> one{random_sequence(*file, prompt, 5, 0, static_cast<std::uint64_t>(prompt))};
      SequenceDriver(*executor).run(one);
      alone.push_back(one[0]);
    }
    const std::unique_ptr<cpu::CpuExecutor> other = load(*file, *kernels, 2);
    std::vector<DrivenSequence> together;
    const std::int32_t chunks[] = {1, 7, 0, 64};
    for (std::size_t i = 0; i < 4; ++i)
      together.push_back(random_sequence(*file, prompts[i], 5, chunks[i], static_cast<std::uint64_t>(prompts[i])));
    SequenceDriver(*other).run(together, 9);
    for (std::size_t i = 0; i < 4; ++i) {
      ASSERT_EQ(alone[i].tokens, together[i].tokens) << kernels->name;
      for (std::size_t t = 0; t < 5; ++t) {
        ASSERT_EQ(std::memcmp(alone[i].logits[t].data(), together[i].logits[t].data(), alone[i].logits[t].size() * sizeof(float)),
                  0)
            << kernels->name << ", prompt of " << prompts[i] << ", token " << t;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, TinyLlama, ::testing::ValuesIn(variants()),
                         [](const ::testing::TestParamInfo<Variant>& variant) { return variant.param.name; });

TEST(CpuExecutor, RefusesWhatDoesNotFit) {
  const testing::TempFile path = testing::tiny_llama_file({});
  const Result<std::unique_ptr<ModelFile>> file = open_model_file(path.path());
  ASSERT_TRUE(file.ok());
  const auto message = [&](const cpu::CpuExecutorOptions& options) {
    const Result<std::unique_ptr<cpu::CpuExecutor>> executor = cpu::CpuExecutor::create(**file, options);
    return executor.ok() ? std::string("ok") : executor.error().message;
  };
  EXPECT_NE(message({.memory_budget_bytes = 1000}).find("--memory-budget"), std::string::npos);
  EXPECT_NE(message({.context = 4096}).find("--context 4096 is more than the model was made for (512)"), std::string::npos);
  EXPECT_EQ(message({.context = 512}), "ok");
}

}  // namespace
}  // namespace linnet
