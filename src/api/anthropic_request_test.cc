#include "api/anthropic_request.h"

#include <gtest/gtest.h>

#include <string>

namespace linnet::api {
namespace {

Result<ParsedRequest> parse(const std::string& body) { return parse_anthropic(body, {}); }

std::string user(const std::string& fields) { return R"({"messages":[{"role":"user","content":"x"}])" + fields + "}"; }

TEST(AnthropicRequest, MessagesOfEveryLegalShape) {
  struct Row {
    const char* body;
    const char* messages;
  };
  const Row rows[] = {
      {R"({"messages":[{"role":"user","content":"hi"}]})", R"([{"role":"user","content":"hi"}])"},
      {R"({"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}]})",
       R"([{"role":"system","content":"s"},{"role":"user","content":"a\nb"}])"},
      {R"({"system":[{"type":"text","text":"s"},{"type":"text","text":"t"}],"messages":[{"role":"user","content":"hi"},{"role":"system","content":"u"},{"role":"user","content":""}]})",
       R"([{"role":"system","content":"s\nt"},{"role":"user","content":"hi"},{"role":"system","content":"u"},{"role":"user","content":""}])"},
      {R"({"system":[],"messages":[{"role":"user","content":[]}]})", R"([{"role":"user","content":""}])"},
      {R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"t"},{"type":"tool_use","id":"c1","name":"get","input":{"b":1,"a":2}}]},{"role":"user","content":[{"type":"text","text":"and?"},{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"4"},{"type":"text","text":"2"}]}]}]})",
       R"([{"role":"user","content":"q"},{"role":"assistant","content":"t","reasoning_content":"hm","tool_calls":[{"type":"function","function":{"name":"get","arguments":{"b":1,"a":2}},"id":"c1"}]},{"role":"tool","content":"4\n2","tool_call_id":"c1"},{"role":"user","content":"and?"}])"},
      {R"({"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"},{"type":"tool_result","tool_use_id":"c2","is_error":true,"content":"no"}]}]})",
       R"([{"role":"tool","content":"","tool_call_id":"c1"},{"role":"tool","content":"Error: no","tool_call_id":"c2"}])"},
      {R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":""},{"role":"assistant","content":[]},{"role":"assistant","content":null},{"role":"assistant"},{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"}]},{"role":"user","content":"b"}]})",
       R"([{"role":"user","content":"a"},{"role":"user","content":"b"}])"},
  };
  for (const Row& row : rows) {
    const auto parsed = parse(row.body);
    ASSERT_TRUE(parsed.ok()) << row.body << parsed.error().message;
    EXPECT_EQ(std::get<ChatPrompt>(parsed->request.prompt).messages_json, row.messages);
    EXPECT_TRUE(parsed->ignored.empty()) << row.body;
  }
}

TEST(AnthropicRequest, Fields) {
  const auto parsed = parse(user(
      R"(,"model":"m","max_tokens":7,"temperature":0.5,"top_p":0.25,"top_k":3,"stop_sequences":["a","b"],"stream":true,"metadata":{"user_id":"u"},"thinking":{"type":"disabled"},"tools":[],"betas":[],"other":1)"));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->model, "m");
  EXPECT_EQ(parsed->request.max_tokens, 7);
  EXPECT_EQ(parsed->request.sampling.temperature, 0.5F);
  EXPECT_EQ(parsed->request.sampling.top_p, 0.25F);
  EXPECT_EQ(parsed->request.sampling.top_k, 3);
  EXPECT_EQ(parsed->request.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(parsed->stream);
  EXPECT_EQ(parsed->reasoning.enabled, false);
  EXPECT_EQ(parsed->ignored, std::vector<std::string>{"other"});
  EXPECT_EQ(parse(user(R"(,"thinking":{"type":"enabled","budget_tokens":1024})"))->reasoning.max_tokens, 1024);
  EXPECT_TRUE(parse(user(R"(,"tools":[{"name":"f"}],"tool_choice":{"type":"none"})")).ok());
  EXPECT_FALSE(parse_anthropic(user(R"(,"other":1)"), {.strict = true}).ok());
}

TEST(AnthropicRequest, ErrorsNameTheField) {
  const std::pair<std::string, const char*> rows[] = {
      {"{}", "messages"},
      {R"({"messages":[]})", "messages"},
      {R"({"messages":"hi"})", "messages"},
      {R"({"messages":[5]})", "messages[0]"},
      {R"({"messages":[{"content":"x"}]})", "messages[0].role"},
      {R"({"messages":[{"role":"robot","content":"x"}]})", "messages[0].role"},
      {R"({"messages":[{"role":"user"}]})", "messages[0].content"},
      {R"({"messages":[{"role":"user","content":5}]})", "messages[0].content"},
      {R"({"messages":[{"role":"user","content":["x"]}]})", "messages[0].content[0]"},
      {R"({"messages":[{"role":"user","content":[{"text":"x"}]}]})", "messages[0].content[0].type"},
      {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})", "messages[0].content[0].text"},
      {R"({"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]})", "messages[0].content[0].type"},
      {R"({"messages":[{"role":"user","content":[{"type":"tool_use","name":"f"}]}]})", "messages[0].content[0].type"},
      {R"({"messages":[{"role":"user","content":[{"type":"tool_result","content":"x"}]}]})",
       "messages[0].content[0].tool_use_id"},
      {R"({"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image"}]}]}]})",
       "messages[0].content[0].content[0].type"},
      {R"({"messages":[{"role":"assistant","content":[{"type":"tool_use","name":"f","input":5}]}]})",
       "messages[0].content[0].input"},
      {R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"I"}]})", "messages[1].role"},
      {user(R"(,"system":5)"), "system"},
      {user(R"(,"system":[{"type":"image"}])"), "system[0].type"},
      {user(R"(,"max_tokens":"7")"), "max_tokens"},
      {user(R"(,"stop_sequences":"x")"), "stop_sequences"},
      {user(R"(,"stop_sequences":[1])"), "stop_sequences[0]"},
      {user(R"(,"tools":[{"name":"f","input_schema":{}}])"), "tools"},
      {user(R"(,"tools":[{"name":"f"}],"tool_choice":{"type":"any"})"), "tools"},
      {user(R"(,"thinking":"yes")"), "thinking"},
      {user(R"(,"thinking":{"type":"maybe"})"), "thinking.type"},
      {user(R"(,"thinking":{"type":"enabled","budget_tokens":0})"), "thinking.budget_tokens"},
      {user(R"(,"mcp_servers":[{}])"), "mcp_servers"},
      {user(R"(,"n":2)"), "n"},
  };
  for (const auto& [body, param] : rows) {
    const auto parsed = parse(body);
    ASSERT_FALSE(parsed.ok()) << body;
    EXPECT_EQ(parsed.error().param, param) << body << parsed.error().message;
  }
}

}  // namespace
}  // namespace linnet::api
