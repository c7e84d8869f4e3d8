#include "api/grammar_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace linnet::api {
namespace {

Result<std::optional<GrammarSource>> read(const std::string& text) {
  const Json json = Json::parse(text);
  ObjectReader reader(json, {});
  TextRequest request;
  LINNET_RETURN_IF_ERROR(read_grammar_fields(reader, request));
  EXPECT_TRUE(reader.unknown().empty());
  return request.grammar;
}

TEST(GrammarFields, EveryWayToAsk) {
  struct Row {
    std::string body;
    GrammarKind kind;
    std::string text;
  };
  const Row rows[] = {
      {R"({"grammar":"start: \"a\""})", GrammarKind::kLark, "start: \"a\""},
      {R"({"guided_grammar":"g"})", GrammarKind::kLark, "g"},
      {R"({"response_format":{"type":"json_object"}})", GrammarKind::kJsonSchema, R"({"type":"object"})"},
      {R"({"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"array"}}}})",
       GrammarKind::kJsonSchema, R"({"type":"array"})"},
      {R"({"json_schema":{"b":1,"a":2}})", GrammarKind::kJsonSchema, R"({"b":1,"a":2})"},
      {R"({"guided_json":"{\"type\":\"null\"}"})", GrammarKind::kJsonSchema, R"({"type":"null"})"},
      {R"({"guided_regex":"[0-9]+"})", GrammarKind::kRegex, "[0-9]+"},
      {R"x({"guided_choice":["a.b","(c)","d"]})x", GrammarKind::kRegex, R"((a\.b|\(c\)|d))"},
      {R"({"structured_outputs":{"regex":"x"}})", GrammarKind::kRegex, "x"},
      {R"({"structured_outputs":{"choice":["x"]}})", GrammarKind::kRegex, "(x)"},
      {R"({"structured_outputs":{"json":{}}})", GrammarKind::kJsonSchema, "{}"},
      {R"({"structured_outputs":{"grammar":"g"}})", GrammarKind::kLark, "g"},
      {R"({"guided_regex":"x","response_format":{"type":"json_object"}})", GrammarKind::kJsonSchema, R"({"type":"object"})"},
  };
  for (const Row& row : rows) {
    const auto grammar = read(row.body);
    ASSERT_TRUE(grammar.ok()) << row.body << grammar.error().message;
    EXPECT_EQ(*grammar, (GrammarSource{row.kind, row.text})) << row.body;
  }
}

TEST(GrammarFields, NothingAskedForIsFreeText) {
  for (const char* body : {"{}", R"({"response_format":{"type":"text"}})", R"({"grammar":""})", R"({"response_format":null})"}) {
    EXPECT_EQ(read(body).value(), std::nullopt) << body;
  }
}

TEST(GrammarFields, WrongShapesAreNamed) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"grammar":5})", "grammar"},
      {R"({"response_format":"json"})", "response_format"},
      {R"({"response_format":{"type":"xml"}})", "response_format.type"},
      {R"({"response_format":{"type":"json_schema"}})", "response_format.json_schema"},
      {R"({"response_format":{"type":"json_schema","json_schema":{"schema":5}}})", "response_format.json_schema.schema"},
      {R"({"guided_choice":[]})", "guided_choice"},
      {R"({"guided_choice":[5]})", "guided_choice[0]"},
      {R"({"guided_regex":{}})", "guided_regex"},
      {R"({"structured_outputs":{"what":1}})", "structured_outputs"},
  };
  for (const auto& [body, param] : rows) {
    const auto grammar = read(body);
    ASSERT_FALSE(grammar.ok()) << body;
    EXPECT_EQ(grammar.error().param, param) << body;
  }
}

}  // namespace
}  // namespace linnet::api
