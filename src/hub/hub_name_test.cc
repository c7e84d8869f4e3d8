#include "hub/hub_name.h"

#include <gtest/gtest.h>

#include <string>

namespace linnet {
namespace {

TEST(HubName, FormsAreRead) {
  const struct {
    const char* text;
    HubName name;
  } cases[] = {
      {"org/repo", {"org/repo", "main", "", ""}},
      {"Qwen/Qwen3-0.6B-GGUF:Q8_0", {"Qwen/Qwen3-0.6B-GGUF", "main", "Q8_0", ""}},
      {"org/repo@v1.0", {"org/repo", "v1.0", "", ""}},
      {"org/repo@refs/pr/7", {"org/repo", "refs/pr/7", "", ""}},
      {"org/repo:UD-Q4_K_XL@main", {"org/repo", "main", "UD-Q4_K_XL", ""}},
      {"org/repo/file.gguf", {"org/repo", "main", "", "file.gguf"}},
      {"o/r/BF16/m-00001-of-00002.gguf@abc", {"o/r", "abc", "", "BF16/m-00001-of-00002.gguf"}},
  };
  for (const auto& c : cases) {
    const Result<HubName> name = parse_hub_name(c.text);
    ASSERT_TRUE(name.ok()) << c.text << ": " << name.error().message;
    EXPECT_EQ(*name, c.name) << c.text;
  }
}

// Names become paths and URLs: nothing that climbs, hides or splits gets through.
TEST(HubName, OtherFormsAreRefused) {
  for (const std::string text : {"",
                                 "demo",
                                 "/repo",
                                 "org/",
                                 "org//f.gguf",
                                 "org/repo/",
                                 "org/repo@",
                                 "org/repo:",
                                 "../repo",
                                 "org/..",
                                 "org/re--po",
                                 "org/re..po",
                                 "org/.hidden",
                                 "org/repo/x.bin",
                                 "org/repo/../x.gguf",
                                 "org/repo@../main",
                                 "org/repo@a/../b",
                                 "org/re po",
                                 "org/repo:Q4/..",
                                 "org/repo?x=1",
                                 "org/repo#x",
                                 "org/r%2e",
                                 "org/repo@a\nb",
                                 "org/repo@a\\b",
                                 "org/x.gguf/y.gguf:Q4_0",
                                 "org/repo@/main",
                                 "org/repo@main/"}) {
    const Result<HubName> name = parse_hub_name(text);
    ASSERT_FALSE(name.ok()) << text;
    EXPECT_EQ(name.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_NE(name.error().message.find("org/name"), std::string::npos) << text;
  }
  EXPECT_FALSE(parse_hub_name(std::string(97, 'a') + "/repo").ok());
  EXPECT_TRUE(parse_hub_name(std::string(96, 'a') + "/repo").ok());
}

TEST(HubName, PathsStayBelow) {
  for (const std::string path : {"a", "a/b.json", "..a/b", "a/...", "a b"}) EXPECT_TRUE(is_path_below(path)) << path;
  for (const std::string path : {"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a\\b", "a\x1b", "a\x7f"})
    EXPECT_FALSE(is_path_below(path)) << path;
  EXPECT_FALSE(is_path_below(std::string("a\0b", 3)));
}

}  // namespace
}  // namespace linnet
