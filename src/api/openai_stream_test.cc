#include "api/openai_stream.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "api/openai_chat.h"
#include "api/openai_completions.h"

namespace linnet::api {
namespace {

const ReplyHead kHead{.id = "chatcmpl-1", .created = 5, .model = "m\"x"};
const FinishEvent kFinish{
    .reason = FinishReason::kLength, .usage = {.prompt_tokens = 7, .cached_tokens = 3, .completion_tokens = 2}, .error = {}};

std::vector<TextAnswer> answers_of(const std::string& text) { return {{.content = text, .finish = kFinish}}; }

// The JSON of each "data:" event.
std::vector<std::string> events(const std::string& bytes) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = bytes.find("\n\n", at);
    EXPECT_NE(end, std::string::npos);
    EXPECT_EQ(bytes.compare(at, 6, "data: "), 0);
    found.push_back(bytes.substr(at + 6, end - at - 6));
    at = end + 2;
  }
  return found;
}

std::string streamed(OpenAiStream stream, const std::vector<std::string>& deltas) {
  std::string bytes;
  stream.begin();
  for (const std::string& text : deltas) {
    stream.delta(0, {.text = text});
    bytes += stream.take();
  }
  stream.finish(0, kFinish);
  return bytes + stream.take();
}

TEST(OpenAiStream, ChatBytes) {
  const std::string head = R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m\"x","choices":[)";
  const auto chunks = events(streamed(chat_stream(kHead, {}), {"a\nb", "é"}));
  ASSERT_EQ(chunks.size(), 5U);
  EXPECT_EQ(chunks[0], head + R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]})");
  EXPECT_EQ(chunks[1], head + R"({"index":0,"delta":{"content":"a\nb"},"logprobs":null,"finish_reason":null}]})");
  EXPECT_EQ(chunks[2], head + R"({"index":0,"delta":{"content":"é"},"logprobs":null,"finish_reason":null}]})");
  EXPECT_EQ(chunks[3], head + R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}]})");
  EXPECT_EQ(chunks[4], "[DONE]");
}

TEST(OpenAiStream, UsageComesLastIfAskedFor) {
  const auto chunks = events(streamed(chat_stream(kHead, {.include_usage = true}), {"a"}));
  ASSERT_EQ(chunks.size(), 5U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(nlohmann::json::parse(chunks[i])["usage"].is_null()) << i;
  const auto last = nlohmann::json::parse(chunks[3]);
  EXPECT_TRUE(last["choices"].empty());
  EXPECT_EQ(last["usage"].dump(),
            R"({"completion_tokens":2,"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":3},"total_tokens":9})");
  EXPECT_EQ(chunks[4], "[DONE]");
}

TEST(OpenAiStream, CompletionBytes) {
  const auto chunks = events(streamed(completion_stream(kHead, {}), {"a"}));
  const std::string head = R"({"id":"chatcmpl-1","object":"text_completion","created":5,"model":"m\"x","choices":[)";
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks[0], head + R"({"index":0,"text":"a","logprobs":null,"finish_reason":null}]})");
  EXPECT_EQ(chunks[1], head + R"({"index":0,"text":"","logprobs":null,"finish_reason":"length"}]})");
}

TEST(OpenAiStream, AnErrorEndsWithoutDone) {
  OpenAiStream stream = chat_stream(kHead, {.include_usage = true});
  stream.delta(0, {.text = "a"});
  stream.fail({ErrorCode::kInternal, "broke", ""});
  const auto chunks = events(stream.take());
  ASSERT_EQ(chunks.size(), 2U);
  EXPECT_EQ(chunks[1], R"({"error":{"message":"broke","type":"server_error","param":null,"code":"internal"}})");
}

TEST(OpenAiStream, DeltasAddUpToTheWholeReply) {
  const std::string text = "Quotes \" and \\ and\nlines, 日本語 😀 \x01 end";
  const auto whole = nlohmann::json::parse(encode_chat_reply(kHead, {}, answers_of(text)));
  EXPECT_EQ(whole["choices"][0]["message"]["content"], text);
  EXPECT_EQ(nlohmann::json::parse(encode_completion_reply(kHead, {}, answers_of(text)))["choices"][0]["text"], text);
  std::string joined;
  for (const std::string& chunk :
       events(streamed(chat_stream(kHead, {}), {"Quotes \" and ", "\\ and\nlines, 日", "本語 😀 \x01", " end"}))) {
    if (chunk == "[DONE]") continue;
    const auto delta = nlohmann::json::parse(chunk)["choices"][0]["delta"];
    if (delta.contains("content")) joined += delta["content"].get<std::string>();
  }
  EXPECT_EQ(joined, text);
}

TEST(OpenAiStream, ReasoningStandsBesideTheContentUnderBothNames) {
  TextAnswer answer{.content = "4", .reasoning = "h\"m", .finish = kFinish};
  answer.finish.usage.reasoning_tokens = 2;
  const std::vector<TextAnswer> answers = {answer};
  const auto whole = nlohmann::json::parse(encode_chat_reply(kHead, {}, answers));
  const auto& message = whole["choices"][0]["message"];
  EXPECT_EQ(message["content"], "4");
  EXPECT_EQ(message["reasoning_content"], "h\"m");
  EXPECT_EQ(message["reasoning"], "h\"m");
  EXPECT_EQ(whole["usage"]["completion_tokens_details"]["reasoning_tokens"], 2);
  OpenAiStream stream = chat_stream(kHead, {});
  stream.delta(0, {.text = "h\"m", .channel = TextChannel::kReasoning});
  stream.delta(0, {.text = "4"});
  const auto chunks = events(stream.take());
  ASSERT_EQ(chunks.size(), 2U);
  const auto thought = nlohmann::json::parse(chunks[0])["choices"][0]["delta"];
  EXPECT_EQ(thought["reasoning_content"], "h\"m");
  EXPECT_EQ(thought["reasoning"], "h\"m");
  EXPECT_FALSE(thought.contains("content"));
  EXPECT_EQ(nlohmann::json::parse(chunks[1])["choices"][0]["delta"]["content"], "4");
}

TEST(OpenAiStream, WholeReplyBytes) {
  EXPECT_EQ(encode_chat_reply(kHead, {}, answers_of("hi")),
            R"({"id":"chatcmpl-1","object":"chat.completion","created":5,"model":"m\"x","choices":[{"index":0,)"
            R"("message":{"role":"assistant","content":"hi","refusal":null},"logprobs":null,"finish_reason":"length"}],)"
            R"("usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":3}}})");
}

// Choices come as they come; usage and [DONE] after the last one, the prompt counted once.
TEST(OpenAiStream, ChoicesAreInterleaved) {
  OpenAiStream stream = chat_stream(kHead, {.choices = 2, .include_usage = true});
  stream.begin();
  stream.delta(1, {.text = "b"});
  stream.delta(0, {.text = "a"});
  stream.finish(1, kFinish);
  stream.delta(0, {.text = "c"});
  stream.finish(0, kFinish);
  const auto chunks = events(stream.take());
  ASSERT_EQ(chunks.size(), 9U);
  std::vector<int> order;
  for (std::size_t i = 0; i < 7; ++i) order.push_back(nlohmann::json::parse(chunks[i])["choices"][0]["index"].get<int>());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 1, 0, 1, 0, 0}));
  const auto usage = nlohmann::json::parse(chunks[7])["usage"];
  EXPECT_EQ(usage["prompt_tokens"], 7);
  EXPECT_EQ(usage["completion_tokens"], 4);
  EXPECT_EQ(chunks[8], "[DONE]");
}

TEST(OpenAiStream, WholeRepliesHaveAllChoices) {
  const std::vector<TextAnswer> answers = {{.content = "a", .finish = kFinish}, {.content = "b", .finish = kFinish}};
  const auto chat = nlohmann::json::parse(encode_chat_reply(kHead, {.choices = 2}, answers));
  EXPECT_EQ(chat["choices"][1]["index"], 1);
  EXPECT_EQ(chat["choices"][1]["message"]["content"], "b");
  EXPECT_EQ(chat["usage"]["completion_tokens"], 4);
  EXPECT_EQ(chat["usage"]["prompt_tokens"], 7);
  const auto completion = nlohmann::json::parse(encode_completion_reply(kHead, {.choices = 2}, answers));
  EXPECT_EQ(completion["choices"][0]["text"], "a");
  EXPECT_EQ(completion["choices"][1]["index"], 1);
}

}  // namespace
}  // namespace linnet::api
