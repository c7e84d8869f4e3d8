// Llama in double precision, written down naively: what the backends' numbers are compared with.
#pragma once

#include <span>
#include <vector>

#include "linnet/ids.h"
#include "weights/model_file.h"

namespace linnet {

// Logits [vocabulary] after each token of `tokens`, from the dequantized weights of `file`.
std::vector<std::vector<double>> reference_logits(const ModelFile& file, std::span<const TokenId> tokens);

}  // namespace linnet
