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
    const Result<std::string> path = resolve_model(wanted, folders());
    return path.ok() ? "ok: " + *path : path.error().message;
  }

  ModelFolders folders() const { return {.own = root_, .hub = root_ / "hub"}; }

  fs::path root_;
};

TEST_F(LocalModels, AreListedByName) {
  const std::vector<LocalModel> models = list_models(folders());
  ASSERT_EQ(models.size(), 3U);
  EXPECT_EQ(models[1], (LocalModel{"Llama-3-8B", root_ / "Llama-3-8B" / "a.gguf", 5}));
  EXPECT_TRUE(list_models({.own = root_ / "nowhere", .hub = {}}).empty());
}

TEST_F(LocalModels, APathIsItself) {
  EXPECT_EQ(*resolve_model((root_ / "Llama-3-8B" / "a.gguf").string(), folders()), root_ / "Llama-3-8B" / "a.gguf");
}

TEST_F(LocalModels, NamesAndPartsOfNamesResolve) {
  EXPECT_EQ(*resolve_model("Llama-3-8B", folders()), root_ / "Llama-3-8B" / "a.gguf");
  EXPECT_EQ(*resolve_model("llama-3-8b", folders()), root_ / "Llama-3-8B" / "a.gguf");
  EXPECT_EQ(*resolve_model("70b", folders()), root_ / "Llama-3-70B" / "b.gguf");
  EXPECT_EQ(*resolve_model("demo", folders()), root_ / "SmolLM2-135M-Instruct-Q4_1" / "c.gguf");
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
  EXPECT_EQ(list_models(folders()).size(), 3U);
}

TEST_F(LocalModels, UnknownNamesSayWhatThereIs) {
  EXPECT_EQ(message_of("qwen"),
            "no file and no model named \"qwen\"; there are Llama-3-70B, Llama-3-8B, SmolLM2-135M-Instruct-Q4_1");
  EXPECT_EQ(message_of("demo-gemma"), "\"demo-gemma\" is not on this machine; fetch it with `linnet get demo-gemma`");
  const Result<std::string> none = resolve_model("qwen", {.own = root_ / "nowhere", .hub = {}});
  EXPECT_NE(none.error().message.find("linnet get demo"), std::string::npos);
  EXPECT_FALSE(resolve_model("", folders()).ok());
}

TEST_F(LocalModels, FoldersAndSplitFilesAreOneModelEach) {
  add("folder", "config.json", "{}");
  EXPECT_EQ(list_models(folders()).size(), 3U);  // no weights yet
  add("folder", "model-00001-of-00002.safetensors", "123");
  add("folder", "model-00002-of-00002.safetensors", "45");
  add("folder", "adapters.safetensors", "1");
  EXPECT_EQ(*resolve_model("folder", folders()), root_ / "folder");
  add("split", "a-00001-of-00002.gguf", "1");
  add("split", "a-00002-of-00002.gguf", "12");
  const std::vector<LocalModel> models = list_models(folders());
  ASSERT_EQ(models.size(), 5U);
  EXPECT_EQ(models[3], (LocalModel{"folder", root_ / "folder", 5}));
  EXPECT_EQ(models[4], (LocalModel{"split", root_ / "split" / "a-00001-of-00002.gguf", 3}));
}

TEST_F(LocalModels, TheHubsCacheCounts) {
  const std::string repository = "hub/models--org--some--name";
  for (const char* revision : {"aaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbb"}) {
    const std::string snapshot = repository + "/snapshots/" + revision;
    add(snapshot, "config.json", "{}");
    add(snapshot, "model.safetensors", "123");
    add(snapshot + "/Q4", "x.gguf", "12");
  }
  add(repository + "/refs", "main", "bbbbbbbbbbbbbbbbbbbb\n");
  add("hub/datasets--org--data/snapshots/a", "x.gguf", "1");
  add("hub/models--gpt2/snapshots/c", "model.safetensors", "1");  // no config
  const fs::path snapshots = root_ / repository / "snapshots";
  const std::vector<LocalModel> models = list_models({.own = {}, .hub = root_ / "hub"});
  ASSERT_EQ(models.size(), 4U);
  EXPECT_EQ(models[0], (LocalModel{"org/some--name", snapshots / "bbbbbbbbbbbbbbbbbbbb", 3}));
  EXPECT_EQ(models[1], (LocalModel{"org/some--name", snapshots / "bbbbbbbbbbbbbbbbbbbb" / "Q4" / "x.gguf", 2}));
  EXPECT_EQ(models[2].name, "org/some--name@aaaaaaaaaaaa");
  fs::remove_all(snapshots / "bbbbbbbbbbbbbbbbbbbb" / "Q4");
  EXPECT_EQ(*resolve_model("org/some--name", folders()), snapshots / "bbbbbbbbbbbbbbbbbbbb");
}

}  // namespace
}  // namespace linnet
