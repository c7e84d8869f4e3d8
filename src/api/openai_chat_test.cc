#include "api/openai_chat.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

namespace linnet::api {
namespace {

// A valid chat body with `fields` ("\"a\":1,") added.
std::string chat(const std::string& fields) { return "{" + fields + R"("messages":[{"role":"user","content":"hi"}]})"; }

Result<ParsedRequest> parse(const std::string& fields) { return parse_chat(chat(fields), {}); }

TEST(OpenAiChat, ReadsEveryField) {
  const auto parsed = parse(
      R"("model":"any","stream":true,"stream_options":{"include_usage":true},"max_tokens":5,"temperature":1,"top_p":0.5,"top_k":3,)"
      R"("min_p":0.25,"seed":0,"stop":["a","b"],"ignore_eos":true,"priority":-2,"chat_template_kwargs":{"enable_thinking":false},)");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->model, "any");
  EXPECT_TRUE(parsed->stream);
  EXPECT_TRUE(parsed->include_usage);
  const TextRequest& request = parsed->request;
  EXPECT_EQ(request.sampling, (SamplingOverrides{.temperature = 1.0F, .top_p = 0.5F, .min_p = 0.25F, .top_k = 3, .seed = 0}));
  EXPECT_EQ(request.max_tokens, 5);
  EXPECT_EQ(request.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(request.ignore_eos);
  EXPECT_EQ(request.priority, -2);
  const auto& prompt = std::get<ChatPrompt>(request.prompt);
  EXPECT_EQ(prompt.messages_json, R"([{"role":"user","content":"hi"}])");
  EXPECT_EQ(prompt.template_args_json, R"({"enable_thinking":false})");
  EXPECT_EQ(prompt.tools_json, "");
  EXPECT_TRUE(prompt.add_generation_prompt);
}

TEST(OpenAiChat, ReadsWhatBelongsToARow) {
  const auto parsed = parse(
      R"("n":3,"logprobs":true,"top_logprobs":4,"logit_bias":{"5":-100,"7":1.5},"presence_penalty":0.5,"frequency_penalty":-1,)"
      R"("repetition_penalty":1.25,"repetition_context_size":0,"presence_context_size":10,"frequency_context_size":20,)"
      R"("xtc_probability":0.5,"xtc_threshold":0.25,"min_tokens":3,"timeout_ms":1500,)");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const TextRequest& request = parsed->request;
  EXPECT_EQ(request.choices, 3);
  EXPECT_EQ(request.logit_bias, (std::vector<LogitBias>{{TokenId{5}, -100}, {TokenId{7}, 1.5F}}));
  EXPECT_EQ(request.time_limit, std::chrono::milliseconds(1500));
  EXPECT_EQ(request.sampling, (SamplingOverrides{.xtc_probability = 0.5F,
                                                 .xtc_threshold = 0.25F,
                                                 .repetition_penalty = 1.25F,
                                                 .repetition_context = 0,
                                                 .presence_penalty = 0.5F,
                                                 .frequency_penalty = -1.0F,
                                                 .presence_context = 10,
                                                 .frequency_context = 20,
                                                 .min_tokens = 3,
                                                 .logprobs = 4}));
  EXPECT_EQ(parse(R"("repetition_penalty":0,)")->request.sampling.repetition_penalty, 1.0F) << "off";
  EXPECT_EQ(parse(R"("repeat_penalty":1.5,)")->request.sampling.repetition_penalty, 1.5F);
  EXPECT_EQ(parse(R"("logprobs":true,)")->request.sampling.logprobs, 0);
  EXPECT_EQ(parse(R"("logprobs":false,"top_logprobs":0,)")->request.sampling.logprobs, std::nullopt);
  EXPECT_EQ(parse(R"("top_logprobs":-1,)")->request.sampling.logprobs, std::nullopt);
}

TEST(OpenAiChat, AbsentAndNullLeaveEverythingOpen) {
  for (const char* fields :
       {"", R"("model":null,"stream":null,"stream_options":null,"max_tokens":null,"temperature":null,"top_p":null,)"
            R"("top_k":null,"min_p":null,"seed":null,"stop":null,"n":null,"tools":null,"logprobs":null,)"}) {
    const auto parsed = parse(fields);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed->request.sampling, SamplingOverrides());
    EXPECT_EQ(parsed->request.max_tokens, std::nullopt);
    EXPECT_FALSE(parsed->stream);
    EXPECT_FALSE(parsed->include_usage);
    EXPECT_TRUE(parsed->request.stop.empty());
    EXPECT_TRUE(parsed->ignored.empty());
  }
}

TEST(OpenAiChat, WrongValuesNameTheFieldAndWhatIsAllowed) {
  struct Row {
    const char* fields;
    const char* param;
    const char* contains;
  };
  const Row rows[] = {
      {R"("temperature":"0.7",)", "temperature", "a number from 0.0 to 100.0, not \"0.7\""},
      {R"("temperature":-0.1,)", "temperature", "not -0.1"},
      {R"("temperature":101,)", "temperature", "not 101"},
      {R"("temperature":true,)", "temperature", "not true"},
      {R"("top_p":5,)", "top_p", "above 0.0 to 1.0, not 5"},
      {R"("top_p":0,)", "top_p", "not 0"},
      {R"("min_p":1,)", "min_p", "from 0.0 and below 1.0"},
      {R"("min_p":-1,)", "min_p", "not -1"},
      {R"("top_k":-2,)", "top_k", "not -2"},
      {R"("top_k":0.5,)", "top_k", "not 0.5"},
      {R"("max_tokens":-1,)", "max_tokens", "from 0 to 2147483647, not -1"},
      {R"("max_tokens":1.5,)", "max_tokens", "an integer"},
      {R"("max_tokens":"5",)", "max_tokens", "an integer"},
      {R"("max_tokens":2147483648,)", "max_tokens", "not 2147483648"},
      {R"("max_completion_tokens":-1,)", "max_completion_tokens", "not -1"},
      {R"("seed":1.5,)", "seed", "an integer, not 1.5"},
      {R"("seed":"1",)", "seed", "an integer"},
      {R"("stream":"yes",)", "stream", "true or false, not \"yes\""},
      {R"("stream":1,)", "stream", "true or false"},
      {R"("stream_options":true,)", "stream_options", "an object"},
      {R"("stream_options":{"include_usage":1},)", "stream_options.include_usage", "true or false"},
      {R"("stop":5,)", "stop", "an array of strings"},
      {R"("stop":["a",5],)", "stop[1]", "a string"},
      {R"("ignore_eos":"no",)", "ignore_eos", "true or false"},
      {R"("priority":"high",)", "priority", "an integer"},
      {R"("model":5,)", "model", "a string"},
      {R"("chat_template_kwargs":[],)", "chat_template_kwargs", "an object"},
      {R"("n":0,)", "n", "from 1 to 128, not 0"},
      {R"("n":"x",)", "n", "an integer"},
      {R"("logprobs":5,)", "logprobs", "true or false, not 5"},
      {R"("logprobs":true,"top_logprobs":21,)", "top_logprobs", "from -1 to 20, not 21"},
      {R"("top_logprobs":2,)", "top_logprobs", "send logprobs: true"},
      {R"("logit_bias":[],)", "logit_bias", "an object from token ids to numbers"},
      {R"("logit_bias":{"x":1},)", "logit_bias", "\"x\" is no token id"},
      {R"("logit_bias":{"-5":1},)", "logit_bias", "no token id"},
      {R"("logit_bias":{"5":101},)", "logit_bias.5", "from -100 to 100, not 101"},
      {R"("logit_bias":{"5":null},)", "logit_bias.5", "not null"},
      {R"("presence_penalty":"a",)", "presence_penalty", "not \"a\""},
      {R"("frequency_penalty":101,)", "frequency_penalty", "not 101"},
      {R"("repetition_penalty":-1,)", "repetition_penalty", "not -1"},
      {R"("repetition_penalty":0.001,)", "repetition_penalty", "0 (off) or from 0.01"},
      {R"("repetition_context_size":-1,)", "repetition_context_size", "not -1"},
      {R"("xtc_probability":1.5,)", "xtc_probability", "not 1.5"},
      {R"("xtc_threshold":0.6,)", "xtc_threshold", "not 0.6"},
      {R"("min_tokens":-1,)", "min_tokens", "not -1"},
      {R"("timeout_ms":0,)", "timeout_ms", "from 1"},
  };
  for (const Row& row : rows) {
    const auto parsed = parse(row.fields);
    ASSERT_FALSE(parsed.ok()) << row.fields;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument) << row.fields;
    EXPECT_EQ(parsed.error().param, row.param) << row.fields;
    EXPECT_NE(parsed.error().message.find(row.contains), std::string::npos) << row.fields << parsed.error().message;
  }
}

TEST(OpenAiChat, WhatIsNotOfferedIsNamed) {
  const std::pair<const char*, const char*> rows[] = {
      {"tools", R"([{"type":"function"}])"},
      {"tool_choice", "\"required\""},
      {"tool_choice", R"({"type":"function"})"},
      {"echo", "true"},
      {"suffix", "\"x\""},
      {"best_of", "2"},
      {"functions", "[{}]"},
      {"continue_final_message", "true"},
      {"modalities", R"(["text","audio"])"},
      {"adapters", "\"x\""},
  };
  for (const auto& [name, value] : rows) {
    const auto parsed = parse("\"" + std::string(name) + "\":" + value + ",");
    ASSERT_FALSE(parsed.ok()) << name;
    EXPECT_EQ(parsed.error().code, ErrorCode::kUnsupported) << name;
    EXPECT_EQ(parsed.error().param, name);
    EXPECT_NE(parsed.error().message.find(name), std::string::npos) << parsed.error().message;
  }
}

TEST(OpenAiChat, ValuesThatChangeNothingAreAccepted) {
  const char* rows[] = {
      R"("n":1,)",
      R"("logprobs":false,)",
      R"("top_logprobs":0,)",
      R"("logit_bias":{},)",
      R"("presence_penalty":0,"frequency_penalty":0.0,)",
      R"("repetition_penalty":1.0,)",
      R"("tools":[],"tool_choice":"none",)",
      R"("tool_choice":"auto","parallel_tool_calls":true,)",
      R"("response_format":{"type":"text"},)",
      R"("echo":false,"suffix":"","best_of":1,)",
      R"("xtc_probability":0,"xtc_threshold":0.1,)",
      R"("user":"u","metadata":{"a":1},"store":true,"service_tier":"auto","prompt_cache_key":"k","safety_identifier":"s",)",
      R"("modalities":["text"],)",
      R"("max_tokens":64.0,)",
      R"("stream_options":{"include_obfuscation":false},)",
  };
  for (const char* row : rows) {
    const auto parsed = parse(row);
    ASSERT_TRUE(parsed.ok()) << row << parsed.error().message;
    EXPECT_TRUE(parsed->ignored.empty()) << row;
  }
}

TEST(OpenAiChat, UnknownFieldsAreIgnoredByNameOrRefused) {
  const std::string body = R"({"foo":1,"stream_options":{"bar":2},"messages":[{"role":"user","content":"hi","baz":3}]})";
  const auto parsed = parse_chat(body, {});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->ignored, (std::vector<std::string>{"stream_options.bar", "messages[].baz", "foo"}));
  const auto strict = parse_chat(body, {.strict = true});
  ASSERT_FALSE(strict.ok());
  EXPECT_EQ(strict.error().param, "stream_options.bar");
  EXPECT_TRUE(parse_chat(chat(R"("user":"u",)"), {.strict = true}).ok());
}

TEST(OpenAiChat, SeedsAreAnyInteger) {
  const std::pair<const char*, std::uint64_t> rows[] = {
      {"0", 0}, {"42", 42}, {"-1", ~std::uint64_t{0}}, {"18446744073709551615", ~std::uint64_t{0}}, {"3.0", 3}};
  for (const auto& [text, seed] : rows)
    EXPECT_EQ(parse("\"seed\":" + std::string(text) + ",")->request.sampling.seed, seed) << text;
}

TEST(OpenAiChat, TopKMinusOneIsOff) { EXPECT_EQ(parse(R"("top_k":-1,)")->request.sampling.top_k, 0); }

TEST(OpenAiChat, TheNewerNameOfMaxTokensWins) {
  EXPECT_EQ(parse(R"("max_tokens":5,"max_completion_tokens":7,)")->request.max_tokens, 7);
  EXPECT_EQ(parse(R"("max_tokens":5,)")->request.max_tokens, 5);
}

TEST(OpenAiChat, StopIsBounded) {
  std::string many = "\"stop\":[";
  for (int i = 0; i < 257; ++i) many += (i == 0 ? "\"x\"" : ",\"x\"");
  EXPECT_EQ(parse(many + "],").error().param, "stop");
  EXPECT_EQ(parse("\"stop\":\"" + std::string(16 * 1024 + 1, 'x') + "\",").error().param, "stop");
  EXPECT_EQ(parse(R"("stop":"x",)")->request.stop, (std::vector<std::string>{"x"}));
}

TEST(OpenAiChat, RangesStayOpenAsFloats) {
  EXPECT_GT(*parse(R"("top_p":1e-300,)")->request.sampling.top_p, 0.0F);
  EXPECT_LT(*parse(R"("min_p":0.999999999999,)")->request.sampling.min_p, 1.0F);
}

TEST(OpenAiChat, ChangedBytesNeverBreakTheParser) {
  const std::string valid = chat(R"("temperature":0.5,"stop":["a"],"stream_options":{"include_usage":true},"seed":1,)");
  std::mt19937 random(11);
  for (int round = 0; round < 20'000; ++round) {
    std::string body = valid;
    for (std::size_t i = 1 + random() % 3; i > 0; --i) body[random() % body.size()] = static_cast<char>(random());
    const auto parsed = parse_chat(body, {});
    if (!parsed.ok()) {
      ASSERT_FALSE(parsed.error().message.empty());
      ASSERT_NO_THROW((void)nlohmann::json(parsed.error().message).dump());
    }
  }
}

}  // namespace
}  // namespace linnet::api
