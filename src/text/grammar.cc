#include "text/grammar.h"

#include <utility>

#include "base/check.h"
#include "text/rust_call.h"
#include "text/tokenizer_impl.h"

namespace linnet {
namespace {

rust::Str kind_name(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonSchema:
      return "json_schema";
    case GrammarKind::kRegex:
      return "regex";
    case GrammarKind::kLark:
      return "lark";
  }
  check_failed(__FILE__, __LINE__, "known GrammarKind");
}

}  // namespace

Result<const rust_text::GrammarEnvironment*> Tokenizer::Impl::grammar_environment() const {
  const std::lock_guard lock(grammar_mutex_);
  if (!grammar_environment_) {
    LINNET_ASSIGN(auto environment, rust_call([&] {
                    return rust_text::grammar_environment({table_.bytes.data(), table_.bytes.size()},
                                                          {table_.byte_ends.data(), table_.byte_ends.size()},
                                                          {table_.special.data(), table_.special.size()}, table_.eos);
                  }));
    grammar_environment_.emplace(std::move(environment));
  }
  return &**grammar_environment_;
}

class Grammar::Impl {
 public:
  Impl(Tokenizer tokenizer, rust::Box<rust_text::GrammarState> state)
      : tokenizer_(std::move(tokenizer)), state_(std::move(state)) {}
  const Tokenizer& tokenizer() const { return tokenizer_; }
  rust_text::GrammarState& state() { return *state_; }
  const rust_text::GrammarState& state() const { return *state_; }

 private:
  Tokenizer tokenizer_;  // owns the environment that the state points into
  rust::Box<rust_text::GrammarState> state_;
};

Grammar::Grammar(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Grammar::Grammar(Grammar&&) noexcept = default;
Grammar& Grammar::operator=(Grammar&&) noexcept = default;
Grammar::~Grammar() = default;

Result<Grammar> Grammar::compile(const Tokenizer& tokenizer, GrammarKind kind, std::string_view source) {
  LINNET_ASSIGN(const auto* environment, tokenizer.impl_->grammar_environment());
  LINNET_ASSIGN(auto state,
                rust_call([&] { return rust_text::compile_grammar(*environment, kind_name(kind), rust_bytes(source)); }));
  return Grammar(std::make_unique<Impl>(tokenizer, std::move(state)));
}

Status Grammar::mask(std::span<std::uint32_t> words) {
  const auto tokens = static_cast<std::size_t>(impl_->tokenizer().vocabulary_size());
  CHECK(words.size() >= (tokens + 31) / 32);
  return rust_status([&] { impl_->state().mask({words.data(), words.size()}); });
}

Status Grammar::consume(TokenId token) {
  return rust_status([&] { impl_->state().consume(static_cast<std::uint32_t>(token)); });
}

Result<bool> Grammar::accepting() {
  return rust_call([&] { return impl_->state().accepting(); });
}

bool Grammar::finished() const { return impl_->state().finished(); }

Grammar Grammar::fork() const {
  auto state = rust_call([&] { return impl_->state().fork(); });
  CHECK_MSG(state.ok(), state.error().message);
  return Grammar(std::make_unique<Impl>(impl_->tokenizer(), std::move(state).value()));
}

}  // namespace linnet
