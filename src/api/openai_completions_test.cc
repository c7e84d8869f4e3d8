#include "api/openai_completions.h"

#include <gtest/gtest.h>

namespace linnet::api {
namespace {

Result<ParsedRequest> parse(const std::string& prompt) { return parse_completion("{\"prompt\":" + prompt + "}", {}); }

TEST(OpenAiCompletions, PromptShapes) {
  EXPECT_EQ(std::get<std::string>(parse("\"hi\"")->request.prompt), "hi");
  EXPECT_EQ(std::get<std::string>(parse("[\"hi\"]")->request.prompt), "hi");
  EXPECT_EQ(std::get<std::string>(parse("\"\"")->request.prompt), "");
  const std::vector<TokenId> ids = {TokenId{0}, TokenId{5}, TokenId{2147483647}};
  EXPECT_EQ(std::get<std::vector<TokenId>>(parse("[0,5,2147483647]")->request.prompt), ids);
  EXPECT_EQ(std::get<std::vector<TokenId>>(parse("[[0,5,2147483647]]")->request.prompt), ids);
}

TEST(OpenAiCompletions, WrongPromptsNameTheField) {
  struct Row {
    const char* prompt;
    ErrorCode code;
    const char* param;
    const char* contains;
  };
  const Row rows[] = {
      {"null", ErrorCode::kInvalidArgument, "prompt", "missing"},
      {"5", ErrorCode::kInvalidArgument, "prompt", "not 5"},
      {"{}", ErrorCode::kInvalidArgument, "prompt", "an object"},
      {"[]", ErrorCode::kInvalidArgument, "prompt", "empty"},
      {"[1,\"a\"]", ErrorCode::kInvalidArgument, "prompt[1]", "a token id, not \"a\""},
      {"[-1]", ErrorCode::kInvalidArgument, "prompt[0]", "not -1"},
      {"[1.5]", ErrorCode::kInvalidArgument, "prompt[0]", "not 1.5"},
      {"[2147483648]", ErrorCode::kInvalidArgument, "prompt[0]", "not 2147483648"},
      {"[[1,true]]", ErrorCode::kInvalidArgument, "prompt[0][1]", "not true"},
      {"[\"a\",\"b\"]", ErrorCode::kUnsupported, "prompt", "has 2 prompts; only 1"},
      {"[[1],[2],[3]]", ErrorCode::kUnsupported, "prompt", "has 3 prompts; only 1"},
  };
  for (const Row& row : rows) {
    const auto parsed = parse(row.prompt);
    ASSERT_FALSE(parsed.ok()) << row.prompt;
    EXPECT_EQ(parsed.error().code, row.code) << row.prompt;
    EXPECT_EQ(parsed.error().param, row.param) << row.prompt;
    EXPECT_NE(parsed.error().message.find(row.contains), std::string::npos) << row.prompt << parsed.error().message;
  }
}

TEST(OpenAiCompletions, LogprobsAreANumber) {
  const auto logprobs = [](const std::string& value) {
    return parse_completion("{\"prompt\":\"a\",\"logprobs\":" + value + "}", {});
  };
  EXPECT_EQ(logprobs("5")->request.sampling.logprobs, 5);
  EXPECT_EQ(logprobs("0")->request.sampling.logprobs, 0);
  EXPECT_EQ(logprobs("true")->request.sampling.logprobs, 0);
  EXPECT_EQ(logprobs("false")->request.sampling.logprobs, std::nullopt);
  EXPECT_EQ(logprobs("21").error().param, "logprobs");
}

TEST(OpenAiCompletions, SharesTheFieldsOfChat) {
  const auto parsed = parse_completion(R"({"prompt":"a","max_tokens":3,"temperature":0,"foo":1})", {});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->request.max_tokens, 3);
  EXPECT_EQ(parsed->request.sampling.temperature, 0.0F);
  EXPECT_EQ(parsed->ignored, (std::vector<std::string>{"foo"}));
  EXPECT_EQ(parse_completion(R"({"prompt":"a","echo":true})", {}).error().param, "echo");
}

}  // namespace
}  // namespace linnet::api
