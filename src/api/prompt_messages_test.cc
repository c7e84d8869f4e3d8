#include "api/prompt_messages.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace linnet::api {
namespace {

TEST(PromptMessages, WhatIsTriedWhenATemplateRefuses) {
  struct Row {
    const char* messages;
    std::vector<std::string> fallbacks;
  };
  const Row rows[] = {
      {R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}])", {}},
      {R"([{"role":"system","content":"s"},{"role":"user","content":"a"}])", {R"([{"role":"user","content":"s\n\na"}])"}},
      {R"([{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"system","content":"t"},{"role":"user","content":"c"}])",
       {R"([{"role":"system","content":"s\n\nt"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}])",
        R"([{"role":"user","content":"s\n\nt\n\na"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}])"}},
      {R"([{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c","reasoning_content":"r"},{"role":"assistant","content":"","tool_calls":[{"type":"function"}]}])",
       {R"([{"role":"user","content":"a\n\nb"},{"role":"assistant","content":"c","reasoning_content":"r","tool_calls":[{"type":"function"}]}])"}},
      {R"([{"role":"tool","content":"a"},{"role":"tool","content":"b"}])", {}},
      {R"([{"role":"system","content":"s"}])", {R"([{"role":"user","content":"s"}])"}},
      {R"([{"role":"system","content":""},{"role":"user","content":"a"},{"role":"system","content":""}])",
       {R"([{"role":"system","content":""},{"role":"user","content":"a"}])", R"([{"role":"user","content":"a"}])"}},
  };
  for (const Row& row : rows) {
    ChatPrompt prompt;
    set_messages(Json::parse(row.messages), prompt);
    EXPECT_EQ(prompt.messages_json, row.messages);
    EXPECT_EQ(prompt.fallback_messages_json, row.fallbacks) << row.messages;
  }
}

TEST(PromptMessages, ArgumentsAreAnObjectWhereTheyHoldOne) {
  EXPECT_EQ(read_arguments(R"({"b":1,"a":2})").dump(), R"({"b":1,"a":2})");
  for (const char* text : {"", "no", "[1]", "5"}) EXPECT_EQ(read_arguments(text), Json(text));
}

}  // namespace
}  // namespace linnet::api
