#include "engine/admission.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "engine/engine_rig.h"

namespace linnet {
namespace {

constexpr AdmissionLimits kLimits{.vocabulary = 1000, .context_max = 100};

TEST(Admission, LimitIsPromptAndAnswerWithinTheContext) {
  EXPECT_EQ(admissible_limit({.prompt = prompt_of(10), .max_tokens = 5}, kLimits).value(), 15);
  EXPECT_EQ(admissible_limit({.prompt = prompt_of(10), .max_tokens = 0}, kLimits).value(), 10);
  EXPECT_EQ(admissible_limit({.prompt = prompt_of(10), .max_tokens = 500}, kLimits).value(), 100);
  EXPECT_EQ(admissible_limit({.prompt = prompt_of(10), .max_tokens = std::numeric_limits<std::int32_t>::max()}, kLimits).value(),
            100);
  EXPECT_EQ(admissible_limit({.prompt = prompt_of(10)}, kLimits).value(), 100);
  EXPECT_EQ(admissible_limit({.prompt = prompt_of(99)}, kLimits).value(), 100);
  EXPECT_EQ(admissible_limit({.prompt = prompt_of(100), .max_tokens = 0}, kLimits).value(), 100);
}

TEST(Admission, PromptsBeyondTheContextNameBothNumbers) {
  for (const std::int32_t length : {100, 101, 3000}) {
    const Result<std::int32_t> result = admissible_limit({.prompt = prompt_of(length)}, kLimits);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kContextLengthExceeded);
    EXPECT_NE(result.error().message.find("This model's maximum context length is 100 tokens. However, "), std::string::npos);
    EXPECT_NE(result.error().message.find(std::to_string(length) + " tokens"), std::string::npos);
  }
  EXPECT_FALSE(admissible_limit({.prompt = prompt_of(101), .max_tokens = 0}, kLimits).ok());
}

TEST(Admission, EachFieldIsCheckedAndNamed) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<TokenId> prompt = prompt_of(3);
  struct Row {
    Request request;
    std::string param;
    std::string says;
  };
  const std::vector<Row> rows = {
      {{.prompt = {}}, "prompt", "at least one"},
      {{.prompt = {TokenId{5}, TokenId{1000}}}, "prompt", "prompt[1] is 1000; the vocabulary has ids 0 to 999"},
      {{.prompt = {TokenId{-1}}}, "prompt", "prompt[0] is -1"},
      {{.prompt = prompt, .max_tokens = -1}, "max_tokens", "max_tokens is -1"},
      {{.prompt = prompt, .end_tokens = {TokenId{1000}}}, "end_tokens", "end_tokens[0] is 1000"},
      {{.prompt = prompt, .sampling = {.temperature = -0.5F}}, "temperature", "temperature is -0.5"},
      {{.prompt = prompt, .sampling = {.temperature = kNan}}, "temperature", "nan"},
      {{.prompt = prompt, .sampling = {.temperature = kInfinity}}, "temperature", "inf"},
      {{.prompt = prompt, .sampling = {.top_p = 0}}, "top_p", "top_p is 0"},
      {{.prompt = prompt, .sampling = {.top_p = 1.5F}}, "top_p", "top_p is 1.5"},
      {{.prompt = prompt, .sampling = {.top_p = kNan}}, "top_p", "nan"},
      {{.prompt = prompt, .sampling = {.min_p = 1}}, "min_p", "min_p is 1"},
      {{.prompt = prompt, .sampling = {.min_p = -0.1F}}, "min_p", "min_p is -0.1"},
      {{.prompt = prompt, .sampling = {.top_k = -1}}, "top_k", "top_k is -1"},
  };
  for (const Row& row : rows) {
    const Result<std::int32_t> result = admissible_limit(row.request, kLimits);
    ASSERT_FALSE(result.ok()) << row.says;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(result.error().param, row.param);
    EXPECT_NE(result.error().message.find(row.says), std::string::npos) << result.error().message;
  }
  EXPECT_TRUE(admissible_limit(
                  {.prompt = prompt, .sampling = {.temperature = 0, .top_p = 1e-9F, .min_p = 0.99F, .top_k = 1 << 30}}, kLimits)
                  .ok());
}

}  // namespace
}  // namespace linnet
