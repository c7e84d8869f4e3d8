// llama.cpp's greedy answers on the demo model (tools/make_llama_cpp_goldens.py).
#pragma once

#include <string>
#include <vector>

#include "linnet/ids.h"

namespace linnet {

struct GoldenAnswer {
  std::string text;             // the user's message
  std::vector<TokenId> prompt;  // rendered and tokenized
  std::vector<TokenId> answer;  // greedy
  std::vector<double> margins;  // log-probability of the first choice less that of the second, at each answer token
};

std::vector<GoldenAnswer> read_golden_answers();

}  // namespace linnet
