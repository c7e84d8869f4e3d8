// The two demo models' tokenizers against Hugging Face's, on a corpus made to be nasty (tools/make_tokenizer_goldens.py).
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "demo_model.h"
#include "hub/local_models.h"
#include "runtime/load_vocabulary.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "weights/gguf.h"

namespace linnet {
namespace {

std::string demo_gemma_path() {
  if (const char* path = std::getenv("LINNET_DEMO_GEMMA"); path != nullptr) return path;
  const Result<std::string> path = resolve_model("demo-gemma");
  return path.ok() ? *path : "";
}

Result<Tokenizer> load_tokenizer(const std::string& path) {
  LINNET_ASSIGN(const GgufFile file, GgufFile::open(path));
  LINNET_ASSIGN(const Vocabulary vocabulary, load_gguf_vocabulary(file));
  return Tokenizer::from_vocabulary(vocabulary);
}

std::string unquote(std::string_view quoted) {
  if (quoted == "%") return {};
  std::string text;
  for (std::size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] == '%') {
      text.push_back(static_cast<char>(std::stoi(std::string(quoted.substr(i + 1, 2)), nullptr, 16)));
      i += 2;
    } else {
      text.push_back(quoted[i]);
    }
  }
  return text;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { text.push_back(static_cast<char>(value)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      byte(0xE0 | code >> 12);
    } else {
      byte(0xF0 | code >> 18);
      byte(0x80 | (code >> 12 & 0x3F));
    }
    byte(0x80 | (code >> 6 & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

// "text <quoted>" or "range <first> <count> <between> <after>".
std::string text_of(const std::string& line) {
  std::istringstream fields(line);
  std::string kind;
  std::string first;
  fields >> kind >> first;
  if (kind == "text") return unquote(first);
  std::uint32_t count = 0;
  std::string between;
  std::string after;
  fields >> count >> between >> after;
  const auto begin = static_cast<std::uint32_t>(std::stoul(first, nullptr, 16));
  std::string text;
  for (std::uint32_t code = begin; code < begin + count; ++code) {
    text += unquote(between);
    append_utf8(text, code);
    text += unquote(after);
  }
  return text;
}

// "<number of ids> <FNV-1a 64 of the ids, little-endian>".
std::string digest(const std::vector<TokenId>& tokens) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const TokenId token : tokens) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ (static_cast<std::uint32_t>(token) >> shift & 0xFF)) * 0x100000001B3;
    }
  }
  std::ostringstream text;
  text << tokens.size() << ' ' << std::hex;
  text.width(16);
  text.fill('0');
  text << hash;
  return text.str();
}

// Texts that no tokenizer of this vocabulary can give back: with a byte that no token has, or the sign that stands for a space.
bool is_lossy(const std::array<bool, 256>& has_byte, std::string_view text) {
  if (text.find("\u2581") != std::string_view::npos) return true;
  for (const char c : text) {
    if (!has_byte[static_cast<unsigned char>(c)]) return true;
  }
  return false;
}

std::array<bool, 256> single_bytes(const Tokenizer& tokenizer) {
  std::array<bool, 256> has_byte{};
  for (std::int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    const std::string_view bytes = tokenizer.token_bytes(static_cast<TokenId>(id));
    if (bytes.size() == 1) has_byte[static_cast<unsigned char>(bytes.front())] = true;
  }
  return has_byte;
}

void expect_golden(const Tokenizer& tokenizer, const std::string& name) {
  const std::string folder = std::string(LINNET_SOURCE_DIR) + "/tests/data/tokenizer/";
  std::ifstream corpus(folder + "corpus.txt");
  std::ifstream golden(folder + name + ".golden");
  const std::array<bool, 256> has_byte = single_bytes(tokenizer);
  int cases = 0;
  std::string line;
  std::string want;
  while (std::getline(corpus, line)) {
    ASSERT_TRUE(std::getline(golden, want)) << "the golden file ends before the corpus";
    ++cases;
    const std::string text = text_of(line);
    const auto tokens = tokenizer.encode(text, {.add_special = false});
    ASSERT_TRUE(tokens.ok()) << line << ": " << tokens.error().message;
    const std::string got = digest(*tokens);
    EXPECT_EQ(got, want.substr(0, got.size())) << line;
    if (!is_lossy(has_byte, text)) {
      EXPECT_EQ(tokenizer.decode(*tokens, false), text) << line;
    }
    Detokenizer detokenizer(tokenizer);
    std::string streamed;
    for (const TokenId token : *tokens) streamed += detokenizer.push(token);
    EXPECT_EQ(streamed + detokenizer.finish(), tokenizer.decode(*tokens)) << line;
  }
  EXPECT_GT(cases, 2500);
}

// BL-089: every token alone gives its bytes, and a text of them gives the token's text.
void expect_every_token_decodes(const Tokenizer& tokenizer) {
  for (std::int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    ASSERT_EQ(tokenizer.token_bytes(token).empty(), tokenizer.is_special(token)) << id;
  }
}

TEST(TokenizerGolden, SmolLm2) {
  const auto tokenizer = load_tokenizer(demo_model_path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  expect_golden(*tokenizer, "smollm2");
  expect_every_token_decodes(*tokenizer);
  EXPECT_FALSE(tokenizer->adds_bos());
}

TEST(TokenizerGolden, Gemma3) {
  const auto tokenizer = load_tokenizer(demo_gemma_path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message << " (fetch the model with `linnet get demo-gemma`)";
  expect_golden(*tokenizer, "gemma3");
  expect_every_token_decodes(*tokenizer);
  EXPECT_TRUE(tokenizer->adds_bos());
}

}  // namespace
}  // namespace linnet
