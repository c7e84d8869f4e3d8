#include "api/responses_request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "json/read_json.h"

namespace linnet::api {
namespace {

Result<ParsedRequest> parse(const std::string& body) {
  return parse_responses(
      body, {.stored = [](const std::string& id) -> Result<StoredItems> {
        if (id != "resp_1") return Error{ErrorCode::kNotFound, "no response " + id, "previous_response_id"};
        return StoredItems{
            .items = R"([{"role":"user","content":"first"}])",
            .output = R"([{"type":"message","role":"assistant","content":[{"type":"output_text","text":"one"}]}])"};
      }});
}

TEST(ResponsesRequest, InputOfEveryLegalShape) {
  struct Row {
    const char* body;
    const char* messages;
  };
  const Row rows[] = {
      {R"({"input":"hi"})", R"([{"role":"user","content":"hi"}])"},
      {R"({"input":"hi","instructions":"s"})", R"([{"role":"system","content":"s"},{"role":"user","content":"hi"}])"},
      {R"({"input":[{"role":"developer","content":"d"},{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}]})",
       R"([{"role":"system","content":"d"},{"role":"user","content":"ab"}])"},
      {R"({"input":[{"role":"user","content":"q"},{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":null},{"role":"assistant","content":[{"type":"output_text","text":"t"}]},{"type":"function_call","call_id":"c1","name":"get","arguments":"{\"a\":1}"},{"type":"function_call","call_id":"c2","name":"put","arguments":"x"},{"type":"function_call_output","call_id":"c1","output":"42"},{"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"43"}]}]})",
       R"([{"role":"user","content":"q"},{"role":"assistant","content":"t","reasoning_content":"hm","tool_calls":[{"type":"function","function":{"name":"get","arguments":{"a":1}},"id":"c1"},{"type":"function","function":{"name":"put","arguments":"x"},"id":"c2"}]},{"role":"tool","content":"42","tool_call_id":"c1"},{"role":"tool","content":"43","tool_call_id":"c2"}])"},
      {R"({"input":[{"type":"function_call","call_id":"c1","name":"get","arguments":"{}"},{"type":"function_call_output","call_id":"c1"}]})",
       R"([{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"get","arguments":{}},"id":"c1"}]},{"role":"tool","content":"","tool_call_id":"c1"}])"},
      {R"({"input":"and?","previous_response_id":"resp_1","instructions":"s"})",
       R"([{"role":"system","content":"s"},{"role":"user","content":"first"},{"role":"assistant","content":"one"},{"role":"user","content":"and?"}])"},
  };
  for (const Row& row : rows) {
    const auto parsed = parse(row.body);
    ASSERT_TRUE(parsed.ok()) << row.body << parsed.error().message;
    EXPECT_EQ(std::get<ChatPrompt>(parsed->request.prompt).messages_json, row.messages);
    EXPECT_TRUE(parsed->ignored.empty()) << row.body;
  }
}

TEST(ResponsesRequest, FieldsAndTheirEcho) {
  const auto parsed = parse(
      R"({"input":"hi","model":"m","max_output_tokens":7,"temperature":0.5,"stream":true,"store":false,"metadata":{"a":"b"},"reasoning":{"effort":"low"},"include":["reasoning.encrypted_content"],"tools":[{"type":"web_search"}],"text":{"format":{"type":"text"}},"other":1})");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->request.max_tokens, 7);
  EXPECT_TRUE(parsed->stream);
  EXPECT_FALSE(parsed->responses->store);
  EXPECT_EQ(parsed->reasoning.effort, "low");
  EXPECT_EQ(parsed->reasoning.param, "reasoning.effort");
  EXPECT_EQ(parsed->ignored, (std::vector<std::string>{"tools[0]", "other"}));
  const Json echo = Json::parse("{" + parsed->responses->echo + "\"end\":0}");
  EXPECT_EQ(echo["max_output_tokens"], 7);
  EXPECT_EQ(echo["temperature"], 0.5);
  EXPECT_EQ(echo["store"], false);
  EXPECT_EQ(echo["metadata"]["a"], "b");
  EXPECT_EQ(echo["tools"][0]["type"], "web_search");
  EXPECT_TRUE(echo["instructions"].is_null());
  EXPECT_EQ(parsed->responses->items, R"([{"type":"message","role":"user","content":"hi"}])");
}

TEST(ResponsesRequest, FormatsAreGrammars) {
  const auto grammar = [](const char* format) {
    const auto parsed = parse(R"({"input":"x","text":{"format":)" + std::string(format) + "}}");
    EXPECT_TRUE(parsed.ok()) << format;
    return parsed.ok() ? parsed->request.grammar : std::nullopt;
  };
  EXPECT_EQ(grammar(R"({"type":"text"})"), std::nullopt);
  EXPECT_EQ(grammar(R"({"type":"json_object"})"), (GrammarSource{GrammarKind::kJsonSchema, R"({"type":"object"})"}));
  EXPECT_EQ(grammar(R"({"type":"json_schema","name":"n","strict":true,"schema":{"type":"array"}})"),
            (GrammarSource{GrammarKind::kJsonSchema, R"({"type":"array"})"}));
}

TEST(ResponsesRequest, ErrorsNameTheField) {
  const std::pair<const char*, const char*> rows[] = {
      {"{}", "input"},
      {R"({"input":5})", "input"},
      {R"({"input":[]})", "input"},
      {R"({"input":[5]})", "input[0]"},
      {R"({"input":[{"content":"x"}]})", "input[0].role"},
      {R"({"input":[{"role":"tool","content":"x"}]})", "input[0].role"},
      {R"({"input":[{"role":"user"}]})", "input[0].content"},
      {R"({"input":[{"role":"user","content":[{"type":"input_image"}]}]})", "input[0].content[0].type"},
      {R"({"input":[{"type":"item_reference","id":"x"}]})", "input[0].type"},
      {R"({"input":[{"type":"function_call","name":"f","arguments":"{}"}]})", "input[0].call_id"},
      {R"({"input":"x","previous_response_id":"resp_2"})", "previous_response_id"},
      {R"({"input":"x","previous_response_id":5})", "previous_response_id"},
      {R"({"input":"x","tools":[{"type":"function","name":"f"}]})", "tools[0]"},
      {R"({"input":"x","tools":[{}]})", "tools[0].type"},
      {R"({"input":"x","text":{"format":{"type":"xml"}}})", "text.format.type"},
      {R"({"input":"x","text":{"format":{"type":"json_schema","name":"n"}}})", "text.format.schema"},
      {R"({"input":"x","n":2})", "n"},
      {R"({"input":"x","background":true})", "background"},
      {R"({"input":"x","truncation":"auto"})", "truncation"},
      {R"({"input":"x","conversation":"c"})", "conversation"},
      {R"({"input":"x","max_output_tokens":-1})", "max_output_tokens"},
      {R"({"input":"x","reasoning":{"effort":"lots"}})", "reasoning.effort"},
      {R"({"input":"x","instructions":["a"]})", "instructions"},
  };
  for (const auto& [body, param] : rows) {
    const auto parsed = parse(body);
    ASSERT_FALSE(parsed.ok()) << body;
    EXPECT_EQ(parsed.error().param, param) << body << parsed.error().message;
  }
  EXPECT_EQ(parse_responses(R"({"input":"x","previous_response_id":"resp_1"})", {}).error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace linnet::api
