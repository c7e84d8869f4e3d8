#include "server/routes.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "server/served.h"

namespace linnet {
namespace {

constexpr char kChat[] = "/v1/chat/completions";
constexpr char kHi[] = R"({"messages":[{"role":"user","content":"hi"}]})";
constexpr char kHiStream[] = R"({"stream":true,"messages":[{"role":"user","content":"hi"}]})";

FinishEvent finish(FinishReason reason, std::int32_t tokens) {
  return {.reason = reason, .usage = {.prompt_tokens = 4, .cached_tokens = 0, .completion_tokens = tokens}, .error = {}};
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

int status_of(const std::string& response) { return response.size() < 12 ? 0 : std::stoi(response.substr(9, 3)); }

TEST(Routes, HealthIsByteExact) {
  const Served served;
  EXPECT_TRUE(served.ask("GET /health HTTP/1.1\r\nHost: a\r\n\r\n").ends_with("\r\n\r\n{\"status\": \"ok\"}"));
}

TEST(Routes, PathsWithoutTheVersion) {
  Served served;
  served.engine().script({TextDelta{"x"}, finish(FinishReason::kStop, 1)});
  for (const char* prefix : {"/v1", ""}) {
    const std::string path = prefix;
    EXPECT_EQ(status_of(served.ask("GET " + path + "/models HTTP/1.1\r\nHost: a\r\n\r\n")), 200) << path;
    EXPECT_EQ(status_of(served.ask("GET " + path + "/models/tiny HTTP/1.1\r\nHost: a\r\n\r\n")), 200) << path;
    EXPECT_EQ(status_of(served.ask(Served::post(path + "/chat/completions", kHi))), 200) << path;
    EXPECT_EQ(status_of(served.ask(Served::post(path + "/completions", R"({"prompt":"a"})"))), 200) << path;
  }
  EXPECT_EQ(status_of(served.ask("GET /v1/models/other HTTP/1.1\r\nHost: a\r\n\r\n")), 404);
  EXPECT_TRUE(contains(served.ask("GET /v1/models/%ff%0a HTTP/1.1\r\nHost: a\r\n\r\n"), "no model \\\"??\\\" here"));
}

TEST(Routes, SeveralModelsNeedAnExactName) {
  Served served([&](RouteContext& context) {
    auto second = std::make_unique<ScriptedEngine>("org/other");
    second->script({TextDelta{"from other"}, finish(FinishReason::kStop, 1)});
    context.models->add_loaded(std::move(second));
  });
  served.engine().script({TextDelta{"from tiny"}, finish(FinishReason::kStop, 1)});
  const auto ask = [&](const std::string& model) {
    return served.ask(Served::post(kChat, "{\"model\":\"" + model + R"(","messages":[{"role":"user","content":"hi"}]})"));
  };
  EXPECT_TRUE(contains(ask("org/other"), "from other"));
  EXPECT_TRUE(contains(ask("tiny"), "from tiny"));
  const std::string unknown = ask("gpt-4");
  EXPECT_EQ(status_of(unknown), 404);
  EXPECT_TRUE(contains(unknown, "model_not_found"));
  EXPECT_TRUE(contains(unknown, "there is no model \\\"gpt-4\\\" here; there is tiny, org/other"));
  EXPECT_EQ(status_of(served.ask("GET /v1/models/org%2Fother HTTP/1.1\r\nHost: a\r\n\r\n")), 200);
  EXPECT_EQ(status_of(served.ask("GET /v1/models/org/other HTTP/1.1\r\nHost: a\r\n\r\n")), 200);
}

TEST(Routes, AModelIsLoadedWhenItIsFirstAskedFor) {
  int loads = 0;
  bool broken = true;
  Served served([&](RouteContext& context) {
    context.models->add(
        {.id = "org/late", .aliases = {"late"}, .load = [&](std::uint64_t) -> Result<std::unique_ptr<TextEngine>> {
           ++loads;
           if (broken) return Error{ErrorCode::kCorrupt, "the file is cut short", ""};
           auto engine = std::make_unique<ScriptedEngine>("org/late");
           engine->script({TextDelta{"from late"}, finish(FinishReason::kStop, 1)});
           return std::unique_ptr<TextEngine>(std::move(engine));
         }});
  });
  const auto ask = [&](const std::string& model) {
    return served.ask(Served::post(kChat, "{\"model\":\"" + model + R"(","messages":[{"role":"user","content":"hi"}]})"));
  };
  EXPECT_TRUE(contains(ask("late"), "the file is cut short"));
  broken = false;
  const std::string answer = ask("late");
  EXPECT_TRUE(contains(answer, "from late"));
  EXPECT_TRUE(contains(answer, R"("model":"org/late")"));
  EXPECT_TRUE(contains(ask("org/late"), "from late"));
  EXPECT_EQ(loads, 2);

  EXPECT_TRUE(served.ask(Served::post("/v1/models/org/late/unload", "")).ends_with(R"({"status":"unloaded"})"));
  EXPECT_TRUE(served.ask(Served::post("/v1/models/late/load", "")).ends_with(R"({"status":"loaded"})"));
  EXPECT_EQ(loads, 3);
  EXPECT_TRUE(contains(ask("late"), "from late"));
  EXPECT_EQ(status_of(served.ask(Served::post("/v1/models/other/load", ""))), 404);
  EXPECT_EQ(status_of(served.ask(Served::post("/v1/models/late", ""))), 404);
}

TEST(Routes, OneModelAnswersToEveryNameWithItsOwn) {
  Served served;
  served.engine().script({finish(FinishReason::kStop, 1)});
  const std::string response =
      served.ask(Served::post(kChat, R"({"model":"gpt-4","messages":[{"role":"user","content":"hi"}]})"));
  EXPECT_TRUE(contains(response, R"("model":"tiny")"));
}

TEST(Routes, BodyTypes) {
  Served served;
  served.engine().script({finish(FinishReason::kStop, 1)});
  const std::pair<const char*, int> rows[] = {
      {"application/json", 200},
      {"Application/JSON; charset=UTF-8", 200},
      {"application/vnd.api+json", 200},
      {"application/x-www-form-urlencoded", 200},
      {"multipart/form-data; boundary=x", 415},
      {"image/png", 415},
  };
  for (const auto& [type, status] : rows) {
    const std::string request = "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: " + std::string(type) +
                                "\r\nContent-Length: " + std::to_string(sizeof kHi - 1) + "\r\n\r\n" + kHi;
    EXPECT_EQ(status_of(served.ask(request)), status) << type;
  }
}

TEST(Routes, EngineRefusalsKeepTheirStatus) {
  struct Row {
    ErrorCode code;
    int status;
    const char* contains;
  };
  const Row rows[] = {
      {ErrorCode::kContextLengthExceeded, 400, "context_length_exceeded"},
      {ErrorCode::kQueueFull, 429, "retry-after: 1\r\n"},
      {ErrorCode::kUnavailable, 503, "unavailable"},
      {ErrorCode::kInvalidArgument, 400, "roles must alternate"},
  };
  Served served;
  for (const Row& row : rows) {
    served.engine().refuse(Error{row.code, "roles must alternate", ""});
    for (const char* body : {kHi, kHiStream}) {
      const std::string response = served.ask(Served::post(kChat, body));
      EXPECT_EQ(status_of(response), row.status);
      EXPECT_TRUE(contains(response, row.contains)) << response;
      EXPECT_TRUE(contains(response, "content-type: application/json"));
    }
  }
}

TEST(Routes, FailingBeforeTheFirstTextIsAStatusInBothModes) {
  Served served;
  served.engine().script(
      {FinishEvent{.reason = FinishReason::kError, .usage = {}, .error = Error{ErrorCode::kInternal, "logits not finite", ""}}});
  for (const char* body : {kHi, kHiStream}) {
    const std::string response = served.ask(Served::post(kChat, body));
    EXPECT_EQ(status_of(response), 500);
    EXPECT_TRUE(contains(response, "logits not finite"));
  }
}

TEST(Routes, FailingInAStreamIsAnErrorEventWithoutDone) {
  Served served;
  served.engine().script(
      {TextDelta{"a"},
       FinishEvent{.reason = FinishReason::kError, .usage = {}, .error = Error{ErrorCode::kInternal, "broke", ""}}});
  const std::string response = served.ask(Served::post(kChat, kHiStream));
  EXPECT_EQ(status_of(response), 200);
  EXPECT_TRUE(contains(response, R"(data: {"error":{"message":"broke")"));
  EXPECT_FALSE(contains(response, "[DONE]"));
  EXPECT_TRUE(response.ends_with("0\r\n\r\n"));
}

TEST(Routes, IgnoredFieldsAreNamedAndHarmless) {
  Served served;
  served.engine().script({TextDelta{"a"}, finish(FinishReason::kStop, 1)});
  for (const char* mode : {"true", "false"}) {
    const std::string body =
        R"({"stream":)" + std::string(mode) + R"(,"foo":1,"x\r\nset-cookie: é":2,"messages":[{"role":"user","content":"hi"}]})";
    const std::string response = served.ask(Served::post(kChat, body));
    EXPECT_TRUE(contains(response, "\r\nx-linnet-ignored: foo, x??set-cookie: ??\r\n")) << response;
  }
  const Served strict([](RouteContext& context) { context.strict = true; });
  const std::string refused = strict.ask(Served::post(kChat, R"({"foo":1,"messages":[{"role":"user","content":"hi"}]})"));
  EXPECT_EQ(status_of(refused), 400);
  EXPECT_TRUE(contains(refused, R"("param":"foo")"));
}

TEST(Routes, DeltasAreSentWhileTheEngineWorks) {
  Served served;
  http::RawClient client = served.connect();
  client.send(Served::post(kChat, kHiStream));
  const auto answer = served.engine().answer(0);
  ASSERT_NE(answer, nullptr);
  answer->push(TextDelta{"one"});
  EXPECT_TRUE(contains(client.read_until(R"("content":"one")"), R"("role":"assistant","content":"")"));
  answer->push(TextDelta{"two"});
  client.read_until(R"("content":"two")");
  answer->push(finish(FinishReason::kLength, 2));
  EXPECT_TRUE(contains(client.read_until("0\r\n\r\n"), R"("finish_reason":"length")"));
  EXPECT_FALSE(answer->cancelled());
}

TEST(Routes, AQuietStreamIsKeptAlive) {
  Served served([](RouteContext& context) { context.keep_alive = std::chrono::milliseconds(20); });
  http::RawClient client = served.connect();
  client.send(Served::post(kChat, kHiStream));
  const std::string begun = client.read_until(": keep-alive, 0 s, prompt of 0 tokens\n\n");
  EXPECT_TRUE(contains(begun, R"("role":"assistant")")) << begun;
  client.read_until(": keep-alive, 0 s, prompt of 0 tokens\n\n");
  const auto answer = served.engine().answer(0);
  answer->push(TextDelta{"a"});
  answer->push(finish(FinishReason::kStop, 1));
  const std::string rest = client.read_until("0\r\n\r\n");
  EXPECT_TRUE(contains(rest, R"("content":"a")"));
  EXPECT_FALSE(contains(rest, R"("role")"));
}

TEST(Routes, ManyStreamsAtOnceFromAnotherThread) {
  constexpr int kStreams = 8;
  constexpr int kDeltas = 200;
  Served served;
  std::vector<http::RawClient> clients;
  for (std::size_t i = 0; i < kStreams; ++i) {
    clients.push_back(served.connect());
    clients.back().send(Served::post(kChat, kHiStream));
    ASSERT_NE(served.engine().answer(i), nullptr);
  }
  std::thread engine([&] {
    for (int delta = 0; delta < kDeltas; ++delta) {
      for (std::size_t i = 0; i < kStreams; ++i)
        served.engine().answer(i)->push(TextDelta{std::to_string(i) + "." + std::to_string(delta) + " "});
    }
    for (std::size_t i = 0; i < kStreams; ++i) served.engine().answer(i)->push(finish(FinishReason::kStop, kDeltas));
  });
  for (std::size_t i = 0; i < kStreams; ++i) {
    const std::string response = clients[i].read_until("0\r\n\r\n");
    std::size_t at = 0;
    for (int delta = 0; delta < kDeltas; ++delta) {
      at = response.find("\"content\":\"" + std::to_string(i) + "." + std::to_string(delta) + " \"", at);
      ASSERT_NE(at, std::string::npos) << i << " " << delta;
    }
  }
  engine.join();
}

TEST(Routes, StoppingTheServerCancelsItsRequests) {
  Served served;
  http::RawClient client = served.connect();
  client.send(Served::post(kChat, kHi));
  const auto answer = served.engine().answer(0);
  ASSERT_NE(answer, nullptr);
  client.close();
  served.server().stop();
  EXPECT_TRUE(answer->wait_until_cancelled());
}

}  // namespace
}  // namespace linnet
