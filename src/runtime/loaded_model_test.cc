// A whole model over a scripted executor: templates, reasoning and limits as requests meet them.
#include "runtime/loaded_model.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/fake_executor.h"
#include "runtime/byte_tokenizer.h"

namespace linnet {
namespace {

// Refuses what strict templates refuse, and writes each message as [role:content].
constexpr char kStrict[] =
    "{% for m in messages %}"
    "{% if m.role == 'system' and not loop.first %}{{ raise_exception('system must be first') }}{% endif %}"
    "{% if loop.index0 > 0 and m.role == messages[loop.index0 - 1].role %}{{ raise_exception('roles must alternate') }}{% endif "
    "%}"
    "{% if m.content == 'never' %}{{ raise_exception('not with me') }}{% endif %}"
    "[{{ m.role }}:{{ m.content }}]{% endfor %}";
constexpr char kWithoutSystem[] =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "[{{ m.role }}:{{ m.content }}]{% endfor %}";

// The model says `script` and then ends.
std::unique_ptr<LoadedModel> model_of(const char* chat_template, std::string script = {}) {
  FakeExecutorOptions options;
  options.next_token = [script](std::span<const TokenId>, const SamplingParams&, std::uint64_t step) {
    return step < script.size() ? static_cast<TokenId>(static_cast<unsigned char>(script[step])) : TokenId{256};
  };
  ModelText text{.tokenizer = byte_tokenizer(), .chat_template = {}, .end_tokens = {TokenId{256}}};
  Result<ChatTemplate> compiled = ChatTemplate::compile(chat_template);
  EXPECT_TRUE(compiled.ok());
  text.chat_template = *std::move(compiled);
  text.reasoning = find_reasoning_markers(chat_template);
  return std::make_unique<LoadedModel>(ModelCard{.id = "m"}, std::move(text), std::make_unique<FakeExecutor>(options),
                                       LoadOptions{}, SamplingParams{});
}

ChatPrompt prompt_of(std::string messages, std::vector<std::string> fallbacks = {}) {
  return {.messages_json = std::move(messages), .fallback_messages_json = std::move(fallbacks)};
}

TEST(LoadedModel, StricterShapesAreTriedInOrder) {
  const std::string first = R"([{"role":"user","content":"a"},{"role":"user","content":"b"}])";
  const std::string second = R"([{"role":"system","content":"s"},{"role":"user","content":"a"}])";
  const std::string third = R"([{"role":"user","content":"s a"}])";
  EXPECT_EQ(*model_of(kStrict)->render(prompt_of(second, {third})), "[system:s][user:a]");
  EXPECT_EQ(*model_of(kStrict)->render(prompt_of(first, {second, third})), "[system:s][user:a]");
  EXPECT_EQ(*model_of(kWithoutSystem)->render(prompt_of(second, {third})), "[user:s a]");
  EXPECT_EQ(*model_of(kWithoutSystem)->render(prompt_of(first, {second})), "[user:a][user:b]");
}

TEST(Case, BL016_TheTemplatesOwnWordsWhateverWasTried) {
  const auto rendered = model_of(kStrict)->render(
      prompt_of(R"([{"role":"user","content":"never"}])", {R"([{"role":"user","content":"a"},{"role":"user","content":"b"}])"}));
  ASSERT_FALSE(rendered.ok());
  EXPECT_EQ(rendered.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(rendered.error().message, "not with me");
}

// Says by a comment what its reasoning stands between.
constexpr char kThinks[] = "{{ messages[0].content }}{# </think> #}";

TextAnswer answer(const char* chat_template, const std::string& script, TextRequest request) {
  Result<TextAnswer> answer = model_of(chat_template, script)->run(std::move(request));
  EXPECT_TRUE(answer.ok());
  return answer.ok() ? *std::move(answer) : TextAnswer{};
}

TextRequest chat_request(std::optional<std::int32_t> max_tokens = {}) {
  return {.prompt = prompt_of(R"([{"role":"user","content":"a"}])"), .max_tokens = max_tokens};
}

TEST(Case, BL013_APromptShorterThanAnyMarker) {
  const TextAnswer said = answer(kThinks, "b", chat_request(4));
  EXPECT_EQ(said.content, "b");
}

TEST(Case, BL080_TheTemplateOpensTheReasoning) {
  constexpr char kOpens[] = "{{ messages[0].content }}{% if false %}</think>{% endif %}<think>\n";
  const TextAnswer said = answer(kOpens, "internal reasoning\n</think>answer", chat_request());
  EXPECT_EQ(said.reasoning, "internal reasoning");
  EXPECT_EQ(said.content, "answer");
}

TEST(Case, BL082_WithReasoningFormatNoneTheTextStaysAsItIs) {
  TextRequest request = chat_request();
  request.split_reasoning = false;
  const TextAnswer said = answer(kThinks, "<think>hm</think>\n\nyes", std::move(request));
  EXPECT_EQ(said.content, "<think>hm</think>\n\nyes");
  EXPECT_EQ(said.reasoning, "");
}

TEST(Case, BL083_AThoughtCutOffIsNoContent) {
  const TextAnswer said = answer(kThinks, "<think>a long thought", chat_request(12));
  EXPECT_EQ(said.reasoning, "a lon");
  EXPECT_EQ(said.content, "");
  EXPECT_EQ(said.finish.reason, FinishReason::kLength);
}

TEST(Case, BL038_OneTokenIsOneToken) {
  const TextAnswer said = answer(kThinks, "abc", {.prompt = std::string("x"), .max_tokens = 1});
  EXPECT_EQ(said.content, "a");
  EXPECT_EQ(said.finish.reason, FinishReason::kLength);
  EXPECT_EQ(said.finish.usage.completion_tokens, 1);
}

TEST(LoadedModel, PromptTokensAreWhatIsSubmitted) {
  const auto model = model_of("{{ messages[0].content }}!");
  const TextPrompt prompt = prompt_of(R"([{"role":"user","content":"ab"}])");
  EXPECT_EQ(*model->prompt_tokens(prompt), (std::vector<TokenId>{TokenId{'a'}, TokenId{'b'}, TokenId{'!'}}));
  EXPECT_EQ(model->run({.prompt = prompt})->finish.usage.prompt_tokens, 3);
}

}  // namespace
}  // namespace linnet
