// Tokenizer and chat template out of a Hugging Face folder.
#include "weights/text_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

constexpr char kTokenizer[] = R"({"version":"1.0","truncation":null,"padding":null,
  "added_tokens":[{"id":4,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
  "normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},
  "post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},
  "model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,
  "fuse_unk":false,"byte_fallback":false,"vocab":{"a":0,"b":1,"ab":2,"c":3,"<s>":4},"merges":["a b"]}})";

class TextFolders : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "linnet-folder-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& content) const { std::ofstream(root_ / name) << content; }
  std::string message() const {
    const Result<TextFolder> folder = read_text_folder(root_.string());
    return folder.ok() ? "ok" : folder.error().message;
  }

  fs::path root_;
};

TEST_F(TextFolders, GiveTokenizerAndTemplate) {
  write("tokenizer.json", kTokenizer);
  write("tokenizer_config.json", R"({"bos_token":"<s>","chat_template":"{{ bos_token }}{{ messages[0].content }}"})");
  const Result<TextFolder> folder = read_text_folder(root_.string());
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  const Result<Tokenizer> tokenizer = Tokenizer::from_json(folder->tokenizer_json, folder->tokenizer_config_json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->bos(), TokenId{4});
  EXPECT_EQ(*tokenizer->encode("abc"), (std::vector<TokenId>{TokenId{2}, TokenId{3}}));
  const Result<ChatTemplate> chat = ChatTemplate::compile(folder->chat_template);
  ASSERT_TRUE(chat.ok()) << chat.error().message;
  const Result<std::string> text = chat->render({.messages_json = R"([{"role":"user","content":"abc"}])", .bos_token = "<s>"});
  EXPECT_EQ(*text, "<s>abc");
}

TEST_F(TextFolders, ATemplateFileAndANamedTemplateCount) {
  write("tokenizer.json", kTokenizer);
  write("tokenizer_config.json",
        R"({"chat_template":[{"name":"tool_use","template":"no"},{"name":"default","template":"yes"}]})");
  EXPECT_EQ(read_text_folder(root_.string())->chat_template, "yes");
  write("chat_template.jinja", "from the file");
  EXPECT_EQ(read_text_folder(root_.string())->chat_template, "from the file");
}

TEST_F(TextFolders, WithoutConfigThereIsNoTemplate) {
  write("tokenizer.json", kTokenizer);
  EXPECT_EQ(read_text_folder(root_.string())->chat_template, "");
}

TEST_F(TextFolders, WhatIsWrongIsNamed) {
  EXPECT_NE(message().find("tokenizer.json does not exist"), std::string::npos);
  write("tokenizer.json", kTokenizer);
  write("tokenizer_config.json", "{");
  EXPECT_NE(message().find("tokenizer_config.json: not a JSON object"), std::string::npos);
  write("tokenizer_config.json", R"({"chat_template":7})");
  EXPECT_NE(message().find("chat_template is neither"), std::string::npos);
  write("tokenizer_config.json", R"({"chat_template":[]})");
  EXPECT_NE(message().find("without one named"), std::string::npos);
  fs::resize_file(root_ / "tokenizer.json", TextFolder::kFileBytesMax + 1);
  EXPECT_NE(message().find("at most 67108864 are read"), std::string::npos);
}

}  // namespace
}  // namespace linnet
