#include "hub/local_models.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace linnet {
namespace {

namespace fs = std::filesystem;

class LocalModels : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "linnet-models-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    add("Llama-3-8B", "a.gguf", "12345");
    add("Llama-3-70B", "b.gguf", "1");
    add("SmolLM2-135M-Instruct-Q4_1", "c.gguf", "12");
    add("not-a-model", "readme.txt", "");
  }
  void TearDown() override { fs::remove_all(root_); }
  void add(const std::string& name, const std::string& file, const std::string& content) {
    fs::create_directories(root_ / name);
    std::ofstream(root_ / name / file) << content;
  }
  std::string message_of(std::string_view wanted) const {
    const Result<std::string> path = resolve_model(wanted, root_);
    return path.ok() ? "ok: " + *path : path.error().message;
  }

  fs::path root_;
};

TEST_F(LocalModels, AreListedByName) {
  const std::vector<LocalModel> models = list_models(root_);
  ASSERT_EQ(models.size(), 3U);
  EXPECT_EQ(models[1], (LocalModel{"Llama-3-8B", root_ / "Llama-3-8B" / "a.gguf", 5}));
  EXPECT_TRUE(list_models(root_ / "nowhere").empty());
}

TEST_F(LocalModels, APathIsItself) {
  EXPECT_EQ(*resolve_model((root_ / "Llama-3-8B" / "a.gguf").string(), root_), root_ / "Llama-3-8B" / "a.gguf");
}

TEST_F(LocalModels, NamesAndPartsOfNamesResolve) {
  EXPECT_EQ(*resolve_model("Llama-3-8B", root_), root_ / "Llama-3-8B" / "a.gguf");
  EXPECT_EQ(*resolve_model("llama-3-8b", root_), root_ / "Llama-3-8B" / "a.gguf");
  EXPECT_EQ(*resolve_model("70b", root_), root_ / "Llama-3-70B" / "b.gguf");
  EXPECT_EQ(*resolve_model("demo", root_), root_ / "SmolLM2-135M-Instruct-Q4_1" / "c.gguf");
}

TEST_F(LocalModels, AmbiguousPartsNameTheCandidates) {
  EXPECT_EQ(message_of("llama"), "\"llama\" is part of several models' names: Llama-3-70B, Llama-3-8B");
}

TEST_F(LocalModels, SeveralFilesOfOneNameAreListed) {
  add("Llama-3-8B", "z.gguf", "1");
  const std::string folder = (root_ / "Llama-3-8B").string();
  EXPECT_EQ(message_of("Llama-3-8B"), "\"Llama-3-8B\" has several files, name one: " + folder + "/a.gguf, " + folder + "/z.gguf");
}

TEST_F(LocalModels, WhatIsNoFileIsPassedOver) {
  fs::create_directories(root_ / "odd" / "folder.gguf");
  fs::create_symlink(root_ / "nowhere", root_ / "odd" / "broken.gguf");
  std::ofstream(root_ / "loose.gguf") << "1";
  EXPECT_EQ(list_models(root_).size(), 3U);
}

TEST_F(LocalModels, UnknownNamesSayWhatThereIs) {
  EXPECT_EQ(message_of("qwen"),
            "no file and no model named \"qwen\"; there are Llama-3-70B, Llama-3-8B, SmolLM2-135M-Instruct-Q4_1");
  EXPECT_EQ(message_of("demo-gemma"), "\"demo-gemma\" is not on this machine; fetch it with `linnet get demo-gemma`");
  const Result<std::string> none = resolve_model("qwen", root_ / "nowhere");
  EXPECT_NE(none.error().message.find("linnet get demo"), std::string::npos);
  EXPECT_FALSE(resolve_model("", root_).ok());
}

}  // namespace
}  // namespace linnet
