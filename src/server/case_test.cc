// Faults that servers of this kind are known for, by number, through the front door.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "server/served.h"

namespace linnet {
namespace {

constexpr char kChat[] = "/v1/chat/completions";

const FinishEvent kStop{
    .reason = FinishReason::kStop, .usage = {.prompt_tokens = 3, .cached_tokens = 0, .completion_tokens = 1}, .error = {}};

struct Reply {
  int status = 0;
  std::string head;
  std::string body;
};

Reply ask(const Served& served, std::string_view path, std::string_view body) {
  const std::string response = served.ask(Served::post(path, body));
  const std::size_t end = response.find("\r\n\r\n");
  if (end == std::string::npos) return {};
  return {.status = std::stoi(response.substr(9, 3)), .head = response.substr(0, end), .body = response.substr(end + 4)};
}

// The status is `status`, and the body an OpenAI error object about `param`.
void expect_error(const Reply& reply, int status, const nlohmann::json& param, std::string_view context) {
  EXPECT_EQ(reply.status, status) << context << reply.body;
  const auto json = nlohmann::json::parse(reply.body, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << context << reply.body;
  const auto& error = json["error"];
  EXPECT_TRUE(error["message"].is_string() && error["type"].is_string() && error.contains("param") && error.contains("code"))
      << reply.body;
  EXPECT_EQ(error["param"], param) << context << reply.body;
}

TEST(Case, BL008_AssistantToolCallWithNullContent) {
  Served served;
  served.engine().script({TextDelta{"ok"}, kStop});
  const Reply reply = ask(
      served, kChat,
      R"({"messages":[{"role":"user","content":"secret?"},{"role":"assistant","content":null,"tool_calls":[{"id":"a1",)"
      R"("type":"function","function":{"name":"get","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a1","content":"42"}]})");
  EXPECT_EQ(reply.status, 200) << reply.body;
  const auto messages = nlohmann::json::parse(std::get<ChatPrompt>(served.engine().answer(0)->request().prompt).messages_json);
  EXPECT_EQ(messages[1]["content"], "");
  EXPECT_EQ(messages[1]["tool_calls"][0]["function"]["name"], "get");
}

TEST(Case, BL010_AssistantToolCallWithoutContentIsTheSame) {
  Served served;
  served.engine().script({kStop});
  const std::string tail = R"("tool_calls":[{"id":"a1","type":"function","function":{"name":"get","arguments":"{}"}}]}]})";
  const std::string begin = R"({"messages":[{"role":"user","content":"x"},{"role":"assistant",)";
  EXPECT_EQ(ask(served, kChat, begin + R"("content":null,)" + tail).status, 200);
  EXPECT_EQ(ask(served, kChat, begin + tail).status, 200);
  const auto messages = [&](std::size_t i) {
    return std::get<ChatPrompt>(served.engine().answer(i)->request().prompt).messages_json;
  };
  EXPECT_EQ(messages(0), messages(1));
}

TEST(Case, BL014_ALateSystemMessageIsTheSameOnAllApis) {
  Served served;
  served.engine().script({kStop});
  const std::string turns =
      R"([{"role":"system","content":"You are terse."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello."},)"
      R"({"role":"system","content":"Answer only BLUE."},{"role":"user","content":"Sky colour?"}])";
  const std::pair<const char*, std::string> requests[] = {
      {kChat, "messages"}, {"/v1/messages", "messages"}, {"/v1/responses", "input"}};
  for (const auto& [path, field] : requests) {
    const Reply reply = ask(served, path, "{\"" + field + "\":" + turns + "}");
    EXPECT_EQ(reply.status, 200) << path << reply.body;
  }
  const auto prompt = [&](std::size_t i) { return std::get<ChatPrompt>(served.engine().answer(i)->request().prompt); };
  EXPECT_EQ(prompt(0).messages_json, turns);
  ASSERT_EQ(prompt(0).fallback_messages_json.size(), 2U);
  EXPECT_EQ(prompt(0).fallback_messages_json[0],
            R"([{"role":"system","content":"You are terse.\n\nAnswer only BLUE."},{"role":"user","content":"Hi"},)"
            R"({"role":"assistant","content":"Hello."},{"role":"user","content":"Sky colour?"}])");
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_EQ(prompt(i).messages_json, prompt(0).messages_json) << i;
    EXPECT_EQ(prompt(i).fallback_messages_json, prompt(0).fallback_messages_json) << i;
  }
}

TEST(Case, BL016_ATemplatesOwnWordsReachTheClient) {
  Served served;
  served.engine().refuse(Error{ErrorCode::kInvalidArgument, "roles must alternate", "messages"});
  const Reply reply = ask(served, kChat, R"({"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]})");
  expect_error(reply, 400, "messages", "");
  EXPECT_NE(reply.body.find("roles must alternate"), std::string::npos);
}

TEST(Case, BL034_StreamOptionsWithoutUsage) {
  Served served;
  served.engine().script({TextDelta{"a"}, kStop});
  for (const char* options : {"{}", R"({"include_usage":false})", "null"}) {
    const Reply reply =
        ask(served, kChat,
            R"({"stream":true,"stream_options":)" + std::string(options) + R"(,"messages":[{"role":"user","content":"x"}]})");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body.find("usage"), std::string::npos) << options;
    EXPECT_NE(reply.body.find("data: [DONE]\n\n"), std::string::npos) << options;
  }
}

TEST(Case, BL041_SeedZeroIsASeed) {
  Served served;
  served.engine().script({kStop});
  EXPECT_EQ(ask(served, kChat, R"({"seed":0,"messages":[{"role":"user","content":"x"}]})").status, 200);
  EXPECT_EQ(ask(served, kChat, R"({"messages":[{"role":"user","content":"x"}]})").status, 200);
  EXPECT_EQ(served.engine().answer(0)->request().sampling.seed, 0U);
  EXPECT_EQ(served.engine().answer(1)->request().sampling.seed, std::nullopt);
}

// Mode: whether the answer is streamed. Way: close or reset.
TEST(Case, BL046_AClientThatClosesItsStreamEndsOnlyItsRequest) {
  Served served;
  for (std::size_t i = 0; i < 2; ++i) {
    http::RawClient client = served.connect();
    client.send(Served::post(kChat, R"({"stream":true,"messages":[{"role":"user","content":"x"}]})"));
    const auto answer = served.engine().answer(i);
    ASSERT_NE(answer, nullptr);
    answer->push(TextDelta{"first"});
    client.read_until("first");
    i == 0 ? client.close() : client.reset();
    EXPECT_TRUE(answer->wait_until_cancelled());
    for (int late = 0; late < 10; ++late) answer->push(TextDelta{"late"});
    EXPECT_TRUE(served.ask("GET /health HTTP/1.1\r\nHost: a\r\n\r\n").ends_with("{\"status\": \"ok\"}"));
  }
}

TEST(Case, BL047_LeavingCancelsInBothModesBeforeAnyText) {
  Served served;
  std::size_t index = 0;
  for (const char* stream : {"true", "false"}) {
    for (const char* path : {kChat, "/v1/completions"}) {
      http::RawClient client = served.connect();
      client.send(
          Served::post(path, R"({"max_tokens":1024,"stream":)" + std::string(stream) +
                                 (path == kChat ? R"(,"messages":[{"role":"user","content":"x"}]})" : R"(,"prompt":"x"})")));
      const auto answer = served.engine().answer(index++);
      ASSERT_NE(answer, nullptr);
      EXPECT_FALSE(answer->cancelled());
      client.close();
      EXPECT_TRUE(answer->wait_until_cancelled()) << path << stream;
    }
  }
}

TEST(Case, BL052_ATooLongPromptIsA400InBothModes) {
  Served served;
  served.engine().refuse(Error{ErrorCode::kContextLengthExceeded, "the prompt has 3000 tokens; the context holds 2048", ""});
  for (const char* stream : {"true", "false"}) {
    const Reply reply =
        ask(served, kChat, R"({"stream":)" + std::string(stream) + R"(,"messages":[{"role":"user","content":"x"}]})");
    expect_error(reply, 400, nullptr, stream);
    const auto error = nlohmann::json::parse(reply.body)["error"];
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_EQ(error["code"], "context_length_exceeded");
  }
}

TEST(Case, BL091_UnpairedSurrogate) {
  const Served served;
  expect_error(ask(served, kChat, R"({"messages":[{"role":"user","content":"emoji \ud83d"}]})"), 400, nullptr, "chat");
  expect_error(ask(served, "/v1/completions", R"({"prompt":"emoji \ud83d"})"), 400, nullptr, "completions");
  const Reply messages = ask(served, "/v1/messages", R"({"messages":[{"role":"user","content":"emoji \ud83d"}]})");
  EXPECT_EQ(messages.status, 400);
  EXPECT_EQ(nlohmann::json::parse(messages.body)["error"]["type"], "invalid_request_error");
}

TEST(Case, BL092_InvalidUtf8IsNotRepeated) {
  const Served served;
  for (const char* path : {kChat, "/v1/completions"}) {
    const Reply reply = ask(served, path, "{\"prompt\":\"a\xff b\"}");
    expect_error(reply, 400, nullptr, path);
    EXPECT_EQ(reply.body.find('\xff'), std::string::npos);
  }
}

TEST(Case, BL094_BrokenJson) {
  const Served served;
  for (const char* path : {kChat, "/v1/completions"}) {
    for (const char* body : {"{", "[]", "", "null", "\"x\"", "5"}) expect_error(ask(served, path, body), 400, nullptr, body);
    expect_error(ask(served, path, std::string(20'000'000, '[')), 400, nullptr, "deep");
  }
  // Beyond the body's limit: refused by its length alone.
  http::RawClient client = served.connect();
  client.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n");
  EXPECT_TRUE(client.read_response().starts_with("HTTP/1.1 413 "));
}

TEST(Case, BL095_WrongTypesNameTheField) {
  Served served;
  served.engine().script({kStop});
  const std::pair<const char*, const char*> rows[] = {
      {R"({"temperature":"0.7"})", "temperature"},
      {R"({"top_p":5})", "top_p"},
      {R"({"max_tokens":-1})", "max_tokens"},
      {R"({"max_tokens":1.5})", "max_tokens"},
      {R"({"stream":"yes"})", "stream"},
      {R"({"messages":"hi"})", "messages"},
      {R"({})", "messages"},
      {R"({"xtc_probability":2})", "xtc_probability"},
  };
  for (const auto& [body, param] : rows) expect_error(ask(served, kChat, body), 400, param, body);
  EXPECT_EQ(ask(served, kChat, R"({"temperature":1,"top_p":1,"messages":[{"role":"user","content":"x"}]})").status, 200);
}

}  // namespace
}  // namespace linnet
