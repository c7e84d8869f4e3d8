#include "runtime/byte_tokenizer.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "text/vocabulary.h"

namespace linnet {

// Bytes are named as byte-level vocabularies name them.
Tokenizer byte_tokenizer() {
  Vocabulary vocabulary{.kind = VocabularyKind::kByteLevelBpe, .pre_tokenizer = "gpt-2"};
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int code = printable ? byte : next++;
    std::string name;
    if (code < 128) {
      name = static_cast<char>(code);
    } else {
      name = {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
    }
    vocabulary.tokens.push_back(name);
    vocabulary.types.push_back(TokenType::kNormal);
  }
  vocabulary.tokens.emplace_back("<end>");
  vocabulary.types.push_back(TokenType::kControl);
  vocabulary.tokens.emplace_back("th");
  vocabulary.types.push_back(TokenType::kNormal);
  vocabulary.merges = {"t h"};
  vocabulary.eos = TokenId{256};
  Result<Tokenizer> tokenizer = Tokenizer::from_vocabulary(vocabulary);
  CHECK(tokenizer.ok());
  return *std::move(tokenizer);
}

}  // namespace linnet
