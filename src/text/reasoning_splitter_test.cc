#include "text/reasoning_splitter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace linnet {
namespace {

using Start = ReasoningSplitter::Start;
const ReasoningMarkers kThink{.begin = "<think>", .end = "</think>"};

// `cuts`: ends of the pieces, ascending.
SplitText split(std::string_view text, Start start, const std::vector<std::size_t>& cuts = {}) {
  ReasoningSplitter splitter(kThink, start);
  SplitText all;
  const auto add = [&](const SplitText& part) {
    all.reasoning += part.reasoning;
    all.content += part.content;
  };
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    add(splitter.push(text.substr(begin, cut - begin)));
    begin = cut;
  }
  add(splitter.push(text.substr(begin)));
  add(splitter.finish());
  return all;
}

struct Row {
  Start start;
  const char* text;
  SplitText expected;
};

const Row kRows[] = {
    {Start::kBefore, "hello", {"", "hello"}},
    {Start::kBefore, "", {"", ""}},
    {Start::kBefore, " \n", {"", " \n"}},
    {Start::kBefore, " hello ", {"", " hello "}},
    {Start::kBefore, "<think>a b</think>c", {"a b", "c"}},
    {Start::kBefore, "\n<think>\na\n\nb\n</think>\n\nc d\n", {"a\n\nb", "c d\n"}},
    {Start::kBefore, "<think>\n\n</think>\n\nc", {"", "c"}},
    {Start::kBefore, "<think>cut off", {"cut off", ""}},
    {Start::kBefore, "<think>cut off \n", {"cut off", ""}},
    {Start::kBefore, "<think>cut in a mark </thi", {"cut in a mark </thi", ""}},
    {Start::kBefore, "<thi", {"", "<thi"}},
    {Start::kBefore, "<thinker>", {"", "<thinker>"}},
    {Start::kBefore, "a<think>b</think>c", {"", "a<think>b</think>c"}},
    {Start::kBefore, "a</think>c", {"", "a</think>c"}},
    {Start::kBefore, "<think>a</think>b<think>c</think>d", {"a", "b<think>c</think>d"}},
    {Start::kBefore, "<think>a</</think>b", {"a</", "b"}},
    {Start::kBefore, "<think>a < b </ c</think>  x", {"a < b </ c", "x"}},
    {Start::kBefore, "<think>a</think>", {"a", ""}},
    {Start::kBefore, "<think>a</think> \n", {"a", ""}},
    {Start::kInside, "internal reasoning\n</think>answer", {"internal reasoning", "answer"}},
    {Start::kInside, "\nmore", {"more", ""}},
    {Start::kInside, "</think>x", {"", "x"}},
    {Start::kInside, "é 日本</think>語", {"é 日本", "語"}},
};

TEST(ReasoningSplitter, Whole) {
  for (const Row& row : kRows) EXPECT_EQ(split(row.text, row.start), row.expected) << row.text;
}

TEST(ReasoningSplitter, EveryCutIntoThreeAndIntoBytesIsTheSame) {
  for (const Row& row : kRows) {
    const std::size_t size = std::string_view(row.text).size();
    std::vector<std::size_t> bytes;
    for (std::size_t i = 0; i <= size; ++i) bytes.push_back(i);
    EXPECT_EQ(split(row.text, row.start, bytes), row.expected) << row.text;
    for (std::size_t i = 0; i <= size; ++i) {
      for (std::size_t j = i; j <= size; ++j)
        ASSERT_EQ(split(row.text, row.start, {i, j}), row.expected) << row.text << i << " " << j;
    }
  }
}

TEST(ReasoningSplitter, NothingButPossibleMarkersAndSpaceIsHeldBack) {
  ReasoningSplitter splitter(kThink, Start::kInside);
  EXPECT_EQ(splitter.push("abc"), (SplitText{"abc", ""}));
  EXPECT_EQ(splitter.push(" d </t"), (SplitText{" d", ""}));
  EXPECT_EQ(splitter.push("x"), (SplitText{" </tx", ""}));
  EXPECT_TRUE(splitter.inside());
  EXPECT_EQ(splitter.push("</think>\n"), SplitText{});
  EXPECT_EQ(splitter.push("a "), (SplitText{"", "a "}));
  EXPECT_FALSE(splitter.inside());
  ReasoningSplitter plain(kThink, Start::kBefore);
  EXPECT_EQ(plain.push("<"), SplitText{});
  EXPECT_EQ(plain.push("a"), (SplitText{"", "<a"}));
}

TEST(ReasoningSplitter, KindsByTemplateAndByName) {
  EXPECT_EQ(find_reasoning_markers("{{ x.split('</think>') }}"), kThink);
  EXPECT_EQ(find_reasoning_markers("... [/THINK]")->begin, "[THINK]");
  EXPECT_EQ(find_reasoning_markers("{{ messages }}"), std::nullopt);
  for (const char* name : {"think", "qwen3", "deepseek_r1"}) EXPECT_EQ(*reasoning_markers_named(name), kThink) << name;
  EXPECT_EQ(*reasoning_markers_named("none"), std::nullopt);
  for (const char* name : {"", "qwen", " "}) {
    const auto unknown = reasoning_markers_named(name);
    ASSERT_FALSE(unknown.ok());
    EXPECT_NE(unknown.error().message.find("deepseek_r1"), std::string::npos);
  }
}

TEST(ReasoningSplitter, PromptsThatOpenTheReasoning) {
  for (const char* prompt : {"<think>", "a\n<think>\n", "<think> \n\n"}) EXPECT_TRUE(opens_reasoning(prompt, kThink)) << prompt;
  for (const char* prompt : {"", "\n", "think>", "<think>\n\n</think>\n\n", "<think>a"})
    EXPECT_FALSE(opens_reasoning(prompt, kThink)) << prompt;
}

}  // namespace
}  // namespace linnet
