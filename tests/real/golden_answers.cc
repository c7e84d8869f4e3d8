#include "golden_answers.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace linnet {

std::vector<GoldenAnswer> read_golden_answers() {
  std::ifstream file(LINNET_SOURCE_DIR "/tests/data/real/llama_cpp_greedy.json");
  CHECK_MSG(static_cast<bool>(file), "tests/data/real/llama_cpp_greedy.json is missing");
  const auto ids = [](const nlohmann::json& array) {
    std::vector<TokenId> tokens;
    for (const int id : array) tokens.push_back(static_cast<TokenId>(id));
    return tokens;
  };
  std::vector<GoldenAnswer> answers;
  for (const nlohmann::json& entry : nlohmann::json::parse(file)) {
    answers.push_back(
        {.text = entry["text"], .prompt = ids(entry["prompt"]), .answer = ids(entry["answer"]), .margins = entry["margins"]});
  }
  return answers;
}

}  // namespace linnet
