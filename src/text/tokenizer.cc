#include "text/tokenizer.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/rust_call.h"
#include "text/tokenizer_impl.h"
#include "text/vocabulary_check.h"

namespace linnet {
namespace {

// Strings in one buffer, as they cross to Rust.
struct Joined {
  explicit Joined(const std::vector<std::string>& strings) {
    std::size_t total = 0;
    for (const std::string& string : strings) total += string.size();
    bytes.reserve(total);
    ends.reserve(strings.size());
    for (const std::string& string : strings) {
      bytes.append(string);
      ends.push_back(bytes.size());
    }
  }
  rust_text::Texts view() const { return {rust_bytes(bytes), {ends.data(), ends.size()}}; }

  std::string bytes;
  std::vector<std::uint64_t> ends;
};

std::int64_t id_or_none(const std::optional<TokenId>& id) { return id ? static_cast<std::int64_t>(*id) : -1; }
std::int8_t flag_or_none(const std::optional<bool>& flag) { return flag ? static_cast<std::int8_t>(*flag) : std::int8_t{-1}; }

std::optional<TokenId> token_or_none(std::int64_t id) {
  if (id < 0) return std::nullopt;
  return static_cast<TokenId>(id);
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(const Tokenizer&) = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(const Tokenizer&) = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::from_json(std::string_view tokenizer_json, std::string_view tokenizer_config_json) {
  LINNET_ASSIGN(auto encoder, rust_call([&] {
                  return rust_text::tokenizer_from_json(rust_bytes(tokenizer_json), rust_bytes(tokenizer_config_json));
                }));
  LINNET_ASSIGN(auto table, rust_call([&] { return encoder->take_table(); }));
  return Tokenizer(std::make_shared<const Impl>(std::move(encoder), std::move(table)));
}

Result<Tokenizer> Tokenizer::from_vocabulary(const Vocabulary& vocabulary) {
  LINNET_RETURN_IF_ERROR(check_vocabulary(vocabulary));
  const Joined tokens(vocabulary.tokens);
  const Joined merges(vocabulary.merges);
  std::vector<std::uint8_t> types(vocabulary.tokens.size(), static_cast<std::uint8_t>(TokenType::kNormal));
  for (std::size_t i = 0; i < vocabulary.types.size(); ++i) types[i] = static_cast<std::uint8_t>(vocabulary.types[i]);
  const rust_text::VocabularyView view{
      .sentence_piece = vocabulary.kind == VocabularyKind::kSentencePiece,
      .pre_tokenizer = rust_bytes(vocabulary.pre_tokenizer),
      .tokens = tokens.view(),
      .types = {types.data(), types.size()},
      .scores = {vocabulary.scores.data(), vocabulary.scores.size()},
      .merges = merges.view(),
      .bos = id_or_none(vocabulary.bos),
      .eos = id_or_none(vocabulary.eos),
      .unk = id_or_none(vocabulary.unk),
      .pad = id_or_none(vocabulary.pad),
      .add_bos = flag_or_none(vocabulary.add_bos),
      .add_eos = flag_or_none(vocabulary.add_eos),
      .add_space_prefix = flag_or_none(vocabulary.add_space_prefix),
  };
  LINNET_ASSIGN(auto encoder, rust_call([&] { return rust_text::tokenizer_from_vocabulary(view); }));
  LINNET_ASSIGN(auto table, rust_call([&] { return encoder->take_table(); }));
  return Tokenizer(std::make_shared<const Impl>(std::move(encoder), std::move(table)));
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (text.size() > kEncodeBytesMax) {
    return Error{.code = ErrorCode::kTooLarge,
                 .message = "the text has " + std::to_string(text.size()) + " bytes; at most " + std::to_string(kEncodeBytesMax) +
                            " can be tokenized at once",
                 .param = {}};
  }
  LINNET_ASSIGN(const auto ids,
                rust_call([&] { return impl_->encoder().encode(rust_bytes(text), options.add_special, options.parse_special); }));
  std::vector<TokenId> tokens;
  tokens.reserve(ids.size());
  for (const std::uint32_t id : ids) tokens.push_back(static_cast<TokenId>(id));
  return tokens;
}

std::string Tokenizer::decode(std::span<const TokenId> tokens, bool skip_special) const {
  Detokenizer detokenizer(*this, skip_special ? SpecialTokens::kSkip : SpecialTokens::kKeep);
  std::string text;
  for (const TokenId token : tokens) text += detokenizer.push(token);
  text += detokenizer.finish();
  return text;
}

std::string_view Tokenizer::token_bytes(TokenId token) const {
  if (!impl_->contains(token)) return {};
  return Impl::slice(impl_->table().bytes, impl_->table().byte_ends, index_of(token));
}

std::string_view Tokenizer::token_name(TokenId token) const {
  if (!impl_->contains(token)) return {};
  return Impl::slice(impl_->table().names, impl_->table().name_ends, index_of(token));
}

bool Tokenizer::is_special(TokenId token) const { return impl_->contains(token) && impl_->table().special[index_of(token)] != 0; }

std::int32_t Tokenizer::vocabulary_size() const { return static_cast<std::int32_t>(impl_->size()); }

std::optional<TokenId> Tokenizer::id_of(std::string_view name) const {
  return token_or_none(impl_->encoder().id_of(rust_bytes(name)));
}

std::optional<TokenId> Tokenizer::bos() const { return token_or_none(impl_->table().bos); }
std::optional<TokenId> Tokenizer::eos() const { return token_or_none(impl_->table().eos); }
std::optional<TokenId> Tokenizer::unk() const { return token_or_none(impl_->table().unk); }
std::optional<TokenId> Tokenizer::pad() const { return token_or_none(impl_->table().pad); }
bool Tokenizer::adds_bos() const { return impl_->table().adds_bos; }
bool Tokenizer::strips_leading_space() const { return impl_->table().strips_leading_space; }

}  // namespace linnet
