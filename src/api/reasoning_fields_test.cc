#include "api/reasoning_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace linnet::api {
namespace {

Result<ParsedRequest> read(const char* body) {
  const Json json = Json::parse(body);
  ObjectReader reader(json, {});
  ParsedRequest parsed;
  LINNET_RETURN_IF_ERROR(read_reasoning_fields(reader, parsed));
  return parsed;
}

TEST(ReasoningFields, Values) {
  const std::pair<const char*, ReasoningWish> rows[] = {
      {"{}", {}},
      {R"({"reasoning_effort":"none"})", {.enabled = false, .effort = "", .max_tokens = {}, .param = "reasoning_effort"}},
      {R"({"reasoning_effort":"low"})", {.enabled = true, .effort = "low", .max_tokens = {}, .param = "reasoning_effort"}},
      {R"({"max_reasoning_tokens":5})", {.enabled = {}, .effort = "", .max_tokens = 5, .param = "max_reasoning_tokens"}},
  };
  for (const auto& [body, wish] : rows) {
    const auto parsed = read(body);
    ASSERT_TRUE(parsed.ok()) << body;
    EXPECT_EQ(parsed->reasoning, wish) << body;
  }
  for (const char* body : {R"({"reasoning_effort":"much"})", R"({"reasoning_effort":3})", R"({"max_reasoning_tokens":-1})",
                           R"({"reasoning_format":"xml"})"}) {
    EXPECT_FALSE(read(body).ok()) << body;
  }
  EXPECT_FALSE(read(R"({"reasoning_format":"none"})")->request.split_reasoning);
  EXPECT_TRUE(read(R"({"reasoning_format":"split"})")->request.split_reasoning);
}

TEST(ReasoningFields, WhatAModelIsHeldTo) {
  const ModelCard plain{.id = "plain"};
  const ModelCard always{.id = "always", .reasons = true};
  const ModelCard switched{.id = "switched", .reasons = true, .reasoning_switch = true};
  const ModelCard graded{.id = "graded", .reasons = true, .reasoning_switch = true, .reasoning_effort = true};
  struct Row {
    const ModelCard& model;
    const char* body;
    const char* args;      // before
    const char* expected;  // after; null: refused
  };
  const Row rows[] = {
      {plain, "{}", "", ""},
      {plain, R"({"reasoning_effort":"none"})", "", ""},
      {plain, R"({"reasoning_effort":"low"})", "", nullptr},
      {plain, R"({"max_reasoning_tokens":9})", "", ""},
      {always, R"({"reasoning_effort":"none"})", "", nullptr},
      {always, R"({"reasoning_effort":"high"})", "", ""},
      {always, R"({"max_reasoning_tokens":9})", "", nullptr},
      {switched, R"({"reasoning_effort":"none"})", "", R"({"enable_thinking":false})"},
      {switched, R"({"reasoning_effort":"high"})", R"({"x":1})", R"({"x":1,"enable_thinking":true})"},
      {switched, R"({"reasoning_effort":"high"})", R"({"enable_thinking":false})", R"({"enable_thinking":false})"},
      {graded, R"({"reasoning_effort":"low"})", "", R"({"enable_thinking":true,"reasoning_effort":"low"})"},
  };
  for (const Row& row : rows) {
    auto parsed = read(row.body);
    ASSERT_TRUE(parsed.ok());
    parsed->request.prompt = ChatPrompt{.template_args_json = row.args};
    const Status applied = apply_reasoning(row.model, *parsed);
    EXPECT_EQ(applied.ok(), row.expected != nullptr) << row.model.id << row.body;
    if (applied.ok()) {
      EXPECT_EQ(std::get<ChatPrompt>(parsed->request.prompt).template_args_json, row.expected) << row.body;
    } else {
      EXPECT_EQ(applied.error().param, parsed->reasoning.param);
    }
  }
}

TEST(ReasoningFields, RequestsOverrideTheServersVariables) {
  ParsedRequest parsed;
  parsed.request.prompt = ChatPrompt{.template_args_json = R"({"b":3,"c":4})"};
  ASSERT_TRUE(apply_template_defaults(R"({"a":1,"b":2})", parsed).ok());
  EXPECT_EQ(std::get<ChatPrompt>(parsed.request.prompt).template_args_json, R"({"a":1,"b":3,"c":4})");
  ParsedRequest plain;
  plain.request.prompt = ChatPrompt{};
  ASSERT_TRUE(apply_template_defaults("", plain).ok());
  EXPECT_EQ(std::get<ChatPrompt>(plain.request.prompt).template_args_json, "");
  ParsedRequest text;
  text.request.prompt = std::string("x");
  ASSERT_TRUE(apply_template_defaults(R"({"a":1})", text).ok());
  EXPECT_EQ(std::get<std::string>(text.request.prompt), "x");
}

}  // namespace
}  // namespace linnet::api
