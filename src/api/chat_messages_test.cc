#include "api/chat_messages.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace linnet::api {
namespace {

TEST(ChatMessages, Shapes) {
  struct Row {
    const char* messages;
    const char* expected;
  };
  const Row rows[] = {
      {R"([{"role":"user","content":"hi"}])", R"([{"role":"user","content":"hi"}])"},
      {R"([{"content":"hi","role":"developer"}])", R"([{"role":"system","content":"hi"}])"},
      {R"([{"role":"user","content":[{"type":"text","text":"a "},{"type":"text","text":"b"}]}])",
       R"([{"role":"user","content":"a b"}])"},
      {R"([{"role":"user","content":[{"type":"input_text","text":"a"}]},{"role":"assistant","content":[{"type":"output_text","text":"b"}]}])",
       R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"}])"},
      {R"([{"role":"assistant","content":[{"type":"refusal","refusal":"no"}],"reasoning":"why"}])",
       R"([{"role":"assistant","content":"no","reasoning_content":"why"}])"},
      {R"([{"role":"tool","tool_call_id":"a1"}])", R"([{"role":"tool","content":"","tool_call_id":"a1"}])"},
      {R"([{"role":"user","content":[]}])", R"([{"role":"user","content":""}])"},
      {R"([{"role":"user","content":""}])", R"([{"role":"user","content":""}])"},
      {R"([{"role":"assistant","content":null}])", R"([{"role":"assistant","content":""}])"},
      {R"([{"role":"assistant"}])", R"([{"role":"assistant","content":""}])"},
      {R"([{"role":"user","content":"x","name":"bob"}])", R"([{"role":"user","content":"x","name":"bob"}])"},
      {R"([{"role":"assistant","content":"x","reasoning_content":"y","refusal":null,"tool_calls":null}])",
       R"([{"role":"assistant","content":"x","reasoning_content":"y"}])"},
      {R"([{"role":"tool","tool_call_id":"a1","content":"42"}])", R"([{"role":"tool","content":"42","tool_call_id":"a1"}])"},
      {R"([{"role":"assistant","content":null,"tool_calls":[{"id":"a1","type":"function","function":{"name":"get","arguments":"{\"b\":1,\"a\":\"é\"}"}}]}])",
       R"([{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"get","arguments":{"b":1,"a":"é"}},"id":"a1"}]}])"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"name":"get","arguments":"not json"}}]}])",
       R"([{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"get","arguments":"not json"}}]}])"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"name":"get","arguments":""}}]}])",
       R"([{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"get","arguments":""}}]}])"},
  };
  for (const Row& row : rows) {
    std::vector<std::string> ignored;
    ChatPrompt prompt;
    const Status read = read_messages(Json::parse(row.messages), prompt, ignored);
    ASSERT_TRUE(read.ok()) << row.messages << read.error().message;
    EXPECT_EQ(prompt.messages_json, row.expected) << row.messages;
    EXPECT_TRUE(ignored.empty()) << row.messages;
  }
}

TEST(ChatMessages, ErrorsNameMessageAndField) {
  struct Row {
    const char* messages;
    const char* param;
    const char* contains;
  };
  const Row rows[] = {
      {R"("hi")", "messages", "not \"hi\""},
      {R"([])", "messages", "at least one"},
      {R"({})", "messages", "an object"},
      {R"(["hi"])", "messages[0]", "an object, not \"hi\""},
      {R"([{"content":"hi"}])", "messages[0].role", "missing"},
      {R"([{"role":"robot","content":"hi"}])", "messages[0].role", "\"robot\""},
      {R"([{"role":1,"content":"hi"}])", "messages[0].role", "a string, not 1"},
      {R"([{"role":"user","content":"a"},{"role":"user"}])", "messages[1].content", "missing"},
      {R"([{"role":"user","content":null}])", "messages[0].content", "missing"},
      {R"([{"role":"user","content":5}])", "messages[0].content", "not 5"},
      {R"([{"role":"user","content":[5]}])", "messages[0].content[0]", "not 5"},
      {R"([{"role":"user","content":[{"text":"a"}]}])", "messages[0].content[0].type", "missing"},
      {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text", "missing"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///etc/hosts"}}]}])",
       "messages[0].content[0].type", "\"image_url\""},
      {R"([{"role":"user","content":"a","name":1}])", "messages[0].name", "a string"},
      {R"([{"role":"assistant","tool_calls":{}}])", "messages[0].tool_calls", "an array"},
      {R"([{"role":"assistant","tool_calls":[1]}])", "messages[0].tool_calls[0]", "an object"},
      {R"([{"role":"assistant","tool_calls":[{"type":"x","function":{}}]}])", "messages[0].tool_calls[0].type", "\"function\""},
      {R"([{"role":"assistant","tool_calls":[{}]}])", "messages[0].tool_calls[0].function", "missing"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"arguments":"{}"}}]}])", "messages[0].tool_calls[0].function.name",
       "missing"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]}])",
       "messages[0].tool_calls[0].function.arguments", "a string, not an object"},
      {R"([{"role":"user","content":"a","audio":{"id":"x"}}])", "messages[0].audio", "not offered"},
  };
  for (const Row& row : rows) {
    std::vector<std::string> ignored;
    ChatPrompt prompt;
    const Status read = read_messages(Json::parse(row.messages), prompt, ignored);
    ASSERT_FALSE(read.ok()) << row.messages;
    EXPECT_EQ(read.error().param, row.param) << row.messages;
    EXPECT_NE(read.error().message.find(row.contains), std::string::npos) << row.messages << read.error().message;
  }
}

TEST(ChatMessages, UnknownFieldsAreNamedOnce) {
  std::vector<std::string> ignored;
  const Json messages = Json::parse(R"([{"role":"user","content":"a","foo":1},{"role":"user","content":"b","foo":2,"bar":3}])");
  ChatPrompt prompt;
  ASSERT_TRUE(read_messages(messages, prompt, ignored).ok());
  EXPECT_EQ(ignored, (std::vector<std::string>{"messages[].foo", "messages[].bar"}));
}

}  // namespace
}  // namespace linnet::api
