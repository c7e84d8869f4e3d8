#include "hub/cache_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

namespace linnet {
namespace {

constexpr const char* kVariables[] = {"LINNET_CACHE", "XDG_CACHE_HOME", "HOME",
                                      "HF_HOME",      "HF_HUB_CACHE",   "HUGGINGFACE_HUB_CACHE"};

class CacheFolder : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (const char* name : kVariables) unsetenv(name);
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }
  std::map<std::string, std::string> before_;
};

std::string text(const Result<std::filesystem::path>& path) { return path.ok() ? path->string() : path.error().message; }

// Each variable in turn outweighs those set before it.
TEST_F(CacheFolder, TheHubsCacheIsWhereOtherToolsLook) {
  EXPECT_EQ(text(hub_cache_folder()), "no cache folder: set HF_HOME (or HOME) to a folder for models");
  const struct {
    const char* variable;
    const char* value;
    const char* folder;
  } cases[] = {
      {"HOME", "/h", "/h/.cache/huggingface/hub"},
      {"XDG_CACHE_HOME", "/x", "/x/huggingface/hub"},
      {"HF_HOME", "/hf", "/hf/hub"},
      {"HUGGINGFACE_HUB_CACHE", "/old", "/old"},
      {"HF_HUB_CACHE", "", "/old"},  // empty is not set
      {"HF_HUB_CACHE", "~/hub", "/h/hub"},
      {"HF_HUB_CACHE", "/new", "/new"},
  };
  for (const auto& c : cases) {
    setenv(c.variable, c.value, 1);
    EXPECT_EQ(text(hub_cache_folder()), c.folder) << c.variable;
  }
  EXPECT_EQ(text(huggingface_home()), "/hf");
}

TEST_F(CacheFolder, ModelsLieBelowTheCacheFolder) {
  EXPECT_EQ(text(models_folder()), "no cache folder: set LINNET_CACHE (or HOME) to a folder for models");
  setenv("HOME", "/h", 1);
  EXPECT_EQ(text(models_folder()), "/h/.cache/linnet/models");
  setenv("LINNET_CACHE", "/c", 1);
  EXPECT_EQ(text(models_folder()), "/c/models");
}

}  // namespace
}  // namespace linnet
