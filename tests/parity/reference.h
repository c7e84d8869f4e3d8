// A step of chosen rows on the reference path, and every logit of it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/mlx/executor.h"
#include "linnet/ids.h"
#include "weights/model_file.h"

namespace linnet {

// Null after a failed expectation.
std::unique_ptr<ModelFile> open_model(const std::string& path);
std::unique_ptr<mlx_backend::MlxExecutor> load_reference(const ModelFile& file);

// One row of a step: all its tokens are sampled, so that all their logits are there.
struct Feed {
  std::uint64_t sequence = 0;
  std::int32_t position = 0;
  std::span<const TokenId> tokens;
};

// Logits of each feed, [tokens, vocabulary], of one step of all of them.
std::vector<std::vector<float>> run(mlx_backend::MlxExecutor& executor, const std::vector<Feed>& feeds);
std::vector<float> run_one(mlx_backend::MlxExecutor& executor, const Feed& feed);

::testing::AssertionResult same_bits(const std::vector<float>& ours, const std::vector<float>& golden);

}  // namespace linnet
