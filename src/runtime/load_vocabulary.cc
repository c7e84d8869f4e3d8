#include "runtime/load_vocabulary.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "weights/gguf_vocabulary.h"

namespace linnet {
namespace {

Result<VocabularyKind> kind_of(const GgufFile& file, std::string_view model) {
  if (model == "gpt2") return VocabularyKind::kByteLevelBpe;
  if (model == "llama") return VocabularyKind::kSentencePiece;
  return file.error(ErrorCode::kUnsupported,
                    "tokenizer.ggml.model \"" + std::string(model) + "\" is not supported; known: gpt2, llama");
}

}  // namespace

Result<Vocabulary> load_gguf_vocabulary(const GgufFile& file) {
  LINNET_ASSIGN(const GgufVocabulary read, read_gguf_vocabulary(file));
  Vocabulary vocabulary;
  LINNET_ASSIGN(vocabulary.kind, kind_of(file, read.model));
  vocabulary.pre_tokenizer = std::string(read.pre);
  for (const std::string_view token : read.tokens) vocabulary.tokens.emplace_back(token);
  for (std::size_t i = 0; read.types && i < read.types->size(); ++i)
    vocabulary.types.push_back(static_cast<TokenType>((*read.types)[i]));
  if (vocabulary.kind == VocabularyKind::kSentencePiece && read.scores) {
    for (std::size_t i = 0; i < read.scores->size(); ++i) vocabulary.scores.push_back(static_cast<float>((*read.scores)[i]));
  }
  for (const std::string_view merge : read.merges) vocabulary.merges.emplace_back(merge);
  vocabulary.bos = read.bos;
  vocabulary.eos = read.eos;
  vocabulary.unk = read.unk;
  vocabulary.pad = read.pad;
  vocabulary.add_bos = read.add_bos;
  vocabulary.add_eos = read.add_eos;
  vocabulary.add_space_prefix = read.add_space_prefix;
  return vocabulary;
}

}  // namespace linnet
