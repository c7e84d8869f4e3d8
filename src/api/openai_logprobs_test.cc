#include "api/openai_logprobs.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace linnet::api {
namespace {

const std::vector<TextLogprobs> kTwo = {
    {.token = {"a\"", "a\"", -0.5F}, .top = {{"a\"", "a\"", -0.5F}, {"\xEF\xBF\xBD", "\xC3", -2.25F}}},
    {.token = {"é", "é", -1}, .top = {{"é", "é", -1}, {"é", "é", -std::numeric_limits<float>::infinity()}}},
};

TEST(OpenAiLogprobs, ChatBytes) {
  std::string out;
  std::size_t offset = 0;
  append_chat_logprobs(out, kTwo, offset);
  EXPECT_EQ(out,
            R"({"content":[{"token":"a\"","logprob":-0.5,"bytes":[97,34],"top_logprobs":[)"
            R"({"token":"a\"","logprob":-0.5,"bytes":[97,34]},{"token":"�","logprob":-2.25,"bytes":[195]}]},)"
            R"({"token":"é","logprob":-1,"bytes":[195,169],"top_logprobs":[)"
            R"({"token":"é","logprob":-1,"bytes":[195,169]},{"token":"é","logprob":-9999,"bytes":[195,169]}]}],"refusal":null})");
  out.clear();
  append_chat_logprobs(out, {}, offset);
  EXPECT_EQ(out, R"({"content":[],"refusal":null})");
}

TEST(OpenAiLogprobs, CompletionBytesAndOffsetsThatMoveOn) {
  std::string out;
  std::size_t offset = 0;
  append_completion_logprobs(out, kTwo, offset);
  EXPECT_EQ(out, R"({"tokens":["a\"","é"],"token_logprobs":[-0.5,-1],)"
                 R"("top_logprobs":[{"a\"":-0.5,"�":-2.25},{"é":-1}],"text_offset":[0,2]})");
  EXPECT_EQ(offset, 3U);
  out.clear();
  const std::vector<TextLogprobs> bare = {{.token = {"x", "x", -3}}};
  append_completion_logprobs(out, bare, offset);
  EXPECT_EQ(out, R"({"tokens":["x"],"token_logprobs":[-3],"top_logprobs":null,"text_offset":[3]})");
}

// Every float reads back as itself.
TEST(OpenAiLogprobs, NumbersAreJson) {
  for (const float value : {-0.1F, -1e-30F, -3.4e38F, 0.0F, -12.345678F}) {
    std::string out;
    std::size_t offset = 0;
    const std::vector<TextLogprobs> one = {{.token = {"x", "x", value}}};
    append_chat_logprobs(out, one, offset);
    EXPECT_EQ(nlohmann::json::parse(out)["content"][0]["logprob"].get<float>(), value);
  }
}

}  // namespace
}  // namespace linnet::api
