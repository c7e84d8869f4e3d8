#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace linnet {
namespace {

constexpr std::int64_t kNow = 1722006245;  // 2024-07-26 15:04:05 UTC, a Friday

struct Case {
  std::string name;
  std::map<std::string, std::string> sections;
};

// The format is described in tools/make_template_goldens.py, which makes the expected outputs with Jinja2.
std::vector<Case> read_cases(const std::string& file) {
  std::ifstream stream(std::string(LINNET_SOURCE_DIR) + "/tests/data/chat_templates/" + file, std::ios::binary);
  EXPECT_TRUE(stream.good()) << file;
  std::vector<Case> cases;
  std::string* section = nullptr;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("=== ")) {
      cases.push_back({line.substr(4), {}});
      section = nullptr;
    } else if (line == "--- same template") {
      cases.back().sections["template"] = cases[cases.size() - 2].sections["template"];
    } else if (line.starts_with("--- ")) {
      section = &cases.back().sections[line.substr(4)];
    } else {
      section->append(line).push_back('\n');
    }
  }
  for (Case& one : cases) {
    for (auto& [key, text] : one.sections) {
      if (text.ends_with('\n')) text.pop_back();
    }
    // "--- same template" has had its newline taken off already; one that ends with a blank line keeps it.
  }
  return cases;
}

void use_utc() {
  setenv("TZ", "UTC", 1);
  tzset();
}

Result<std::string> render(const std::string& source, RenderInput input = {}) {
  input.unix_time = kNow;
  auto compiled = ChatTemplate::compile(source);
  if (!compiled.ok()) return compiled.error();
  return compiled->render(input);
}

void run_cases(const std::string& file) {
  use_utc();
  const auto cases = read_cases(file);
  ASSERT_FALSE(cases.empty());
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    const auto section = [&](const std::string& key, const std::string& otherwise = "") {
      const auto at = one.sections.find(key);
      return at == one.sections.end() ? otherwise : at->second;
    };
    const auto text = render(section("template"), {.messages_json = section("messages", "[]"),
                                                   .tools_json = section("tools"),
                                                   .extra_json = section("extra"),
                                                   .bos_token = section("bos_token"),
                                                   .eos_token = section("eos_token"),
                                                   .add_generation_prompt = !one.sections.contains("no_generation_prompt")});
    if (one.sections.contains("expect")) {
      EXPECT_EQ(text.ok() ? *text : "error: " + text.error().message, section("expect"));
    } else if (text.ok()) {
      ADD_FAILURE() << "no error: " << *text;
    } else {
      if (one.sections.contains("error")) {
        EXPECT_EQ(text.error().message, section("error"));
        EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
      }
    }
  }
}

TEST(ChatTemplate, EqualsJinjaOnModelTemplates) { run_cases("models.cases"); }
TEST(ChatTemplate, EqualsJinjaOnFeatures) { run_cases("features.cases"); }

TEST(ChatTemplate, KeepsItsSource) {
  const std::string source = "{% generation %}x{% endgeneration %}";
  auto compiled = ChatTemplate::compile(source);
  ASSERT_TRUE(compiled.ok());
  EXPECT_EQ(compiled->source(), source);
  const ChatTemplate copy = *compiled;
  EXPECT_EQ(copy.render({}).value(), "x");
}

TEST(ChatTemplate, RefusesBrokenSourceWithItsLine) {
  for (const char* source : {"a\nb\n{% if %}", "a\nb\n{{ x", "a\nb\n{% endfor %}", "a\nb\n{% nonsense %}"}) {
    const auto compiled = ChatTemplate::compile(source);
    ASSERT_FALSE(compiled.ok()) << source;
    EXPECT_EQ(compiled.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(compiled.error().message.find("line 3"), std::string::npos) << compiled.error().message;
  }
  EXPECT_FALSE(ChatTemplate::compile("\xff").ok());
  EXPECT_EQ(ChatTemplate::compile(std::string(ChatTemplate::kSourceBytesMax + 1, 'x')).error().code, ErrorCode::kTooLarge);
}

TEST(ChatTemplate, RefusesBrokenInput) {
  for (const char* messages : {"[", "{\"a\":}", "nul", "[\"\\ud800\"]", "[1]x"}) {
    const auto text = render("{{ messages }}",
                             {.messages_json = messages, .tools_json = {}, .extra_json = {}, .bos_token = {}, .eos_token = {}});
    ASSERT_FALSE(text.ok()) << messages << ": " << *text;
    EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(text.error().message.find("messages"), std::string::npos);
  }
  EXPECT_FALSE(render("x", {.messages_json = {}, .tools_json = {}, .extra_json = "[1]", .bos_token = {}, .eos_token = {}}).ok());
  EXPECT_FALSE(
      render("x",
             {.messages_json = std::string(100000, '['), .tools_json = {}, .extra_json = {}, .bos_token = {}, .eos_token = {}})
          .ok());
}

TEST(ChatTemplate, IsBounded) {
  const struct {
    const char* what;
    std::string source;
  } cases[] = {
      {"steps", "{% for a in range(90000) %}{% for b in range(90000) %}{{ b }}{% endfor %}{% endfor %}"},
      {"recursion", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"},
      {"doubling",
       "{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s | "
       "length }}"},
      {"doubling by +",
       "{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s | "
       "length }}"},
      {"repetition", "{{ 'x' * 100000000000 }}"},
      {"replacement", "{% set s = 'x' * 100000 %}{{ s | replace('x', s) | length }}"},
      {"method replacement", "{% set s = 'x' * 100000 %}{{ s.replace('x', s) | length }}"},
      {"joining", "{% set s = 'x' * 1000000 %}{{ range(100000) | map('string') | join(s) | length }}"},
      {"range", "{{ range(100000000000) | list | length }}"},
      {"output", "{% set s = 'x' * 1000000 %}{% for i in range(100000) %}{{ s }}{% endfor %}"},
      {"indent", "{{ ('\n' * 1000000) | indent(1000000) | length }}"},
      {"nesting", "{{ " + std::string(100000, '(')},
      {"nested source", "{{ " + std::string(20000, '[') + std::string(20000, ']') + " }}"},
      {"format", "{{ '%1000000000000d' | format(1) }}"},
      {"json indent", "{{ [[[[[[]]]]]] | tojson(indent=100000000000) | length }}{{ raise_exception('end') }}"},
  };
  for (const auto& [what, source] : cases) {
    SCOPED_TRACE(what);
    const auto text = render(source);
    EXPECT_FALSE(text.ok()) << text->substr(0, 100);
  }
}

TEST(ChatTemplate, ManyMessagesStayWithinTheBounds) {
  std::string messages = "[";
  for (int i = 0; i < 2000; ++i) {
    if (i > 0) messages += ",";
    messages +=
        R"({"role":")" + std::string(i % 2 == 0 ? "user" : "assistant") + R"(","content":")" + std::string(1000, 'x') + "\"}";
  }
  messages += "]";
  const auto text = render(
      "{% for m in messages %}{{ m.role + m.content | trim }}{% if messages[::-1][0].role == 'x' %}{% endif %}{% endfor %}",
      {.messages_json = messages, .tools_json = {}, .extra_json = {}, .bos_token = {}, .eos_token = {}});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_GT(text->size(), 2'000'000U);
}

TEST(ChatTemplate, LocalTimeFollowsTheZone) {
  setenv("TZ", "EST5EDT", 1);
  tzset();
  EXPECT_EQ(render("{{ strftime_now('%Y-%m-%d %H:%M:%S %Z') }}").value(), "2024-07-26 11:04:05 EDT");
  use_utc();
  EXPECT_EQ(render("{{ strftime_now('%Y-%m-%d %H:%M:%S') }}").value(), "2024-07-26 15:04:05");
}

}  // namespace
}  // namespace linnet
