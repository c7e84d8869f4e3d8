#include "runtime/loaded_model.h"

#include <random>
#include <utility>
#include <variant>

#include "runtime/text_source.h"
#include "text/grammar.h"

namespace linnet {
namespace {

constexpr std::uint64_t kSeedStep = 0x9e3779b97f4a7c15;  // odd: a Weyl sequence visits every seed once

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

SamplingParams overridden(SamplingParams params, const SamplingOverrides& overrides) {
  const auto set = [](auto& value, const auto& override) {
    if (override) value = *override;
  };
  set(params.temperature, overrides.temperature);
  set(params.top_p, overrides.top_p);
  set(params.min_p, overrides.min_p);
  set(params.top_k, overrides.top_k);
  set(params.seed, overrides.seed);
  set(params.xtc_probability, overrides.xtc_probability);
  set(params.xtc_threshold, overrides.xtc_threshold);
  set(params.repetition_penalty, overrides.repetition_penalty);
  set(params.repetition_context, overrides.repetition_context);
  set(params.presence_penalty, overrides.presence_penalty);
  set(params.frequency_penalty, overrides.frequency_penalty);
  set(params.presence_context, overrides.presence_context);
  set(params.frequency_context, overrides.frequency_context);
  set(params.min_tokens, overrides.min_tokens);
  set(params.logprobs, overrides.logprobs);
  return params;
}

LoadedModel::LoadedModel(ModelCard card, ModelText text, std::unique_ptr<Executor> executor, const LoadOptions& options,
                         const SamplingParams& sampling)
    : card_(std::move(card)),
      text_(std::move(text)),
      default_sampling_(sampling),
      default_seed_(options.sampling.seed),
      default_max_tokens_(options.max_tokens),
      seeds_(random_seed()),
      engine_(options.engine, std::move(executor), clock_) {
  engine_.start();
}

Result<std::string> LoadedModel::render(const ChatPrompt& prompt) const {
  if (!text_.chat_template) {
    return Error{
        ErrorCode::kInvalidArgument,
        "the model " + card_.id + " has no chat template; start the server with --chat-template FILE, or use /v1/completions",
        "messages"};
  }
  const auto name_of = [this](std::optional<TokenId> token) {
    return token ? std::string(text_.tokenizer.token_name(*token)) : std::string();
  };
  const auto render_messages = [&](const std::string& messages_json) {
    return text_.chat_template->render({.messages_json = messages_json,
                                        .tools_json = prompt.tools_json,
                                        .extra_json = prompt.template_args_json,
                                        .bos_token = name_of(text_.tokenizer.bos()),
                                        .eos_token = name_of(text_.tokenizer.eos()),
                                        .add_generation_prompt = prompt.add_generation_prompt,
                                        .unix_time = clock_.unix_time().count()});
  };
  Result<std::string> rendered = render_messages(prompt.messages_json);
  for (const std::string& messages_json : prompt.fallback_messages_json) {
    if (rendered.ok() || rendered.error().code != ErrorCode::kInvalidArgument) break;
    Result<std::string> retried = render_messages(messages_json);
    if (retried.ok()) return retried;
  }
  return rendered;
}

Result<std::vector<TokenId>> LoadedModel::prompt_tokens(const TextPrompt& prompt) const {
  if (const auto* tokens = std::get_if<std::vector<TokenId>>(&prompt)) return *tokens;
  if (const auto* text = std::get_if<std::string>(&prompt)) return tokenize(*text);
  LINNET_ASSIGN(const std::string rendered, render(std::get<ChatPrompt>(prompt)));
  return encode_rendered(rendered);
}

// A template writes its own BOS.
Result<std::vector<TokenId>> LoadedModel::encode_rendered(const std::string& rendered) const {
  return text_.tokenizer.encode(rendered, {.add_special = false, .parse_special = true});
}

SamplingParams LoadedModel::sampling_of(const SamplingOverrides& asked) {
  SamplingParams params = default_sampling_;
  params.seed = default_seed_ ? *default_seed_ : seeds_.fetch_add(kSeedStep, std::memory_order_relaxed);
  return overridden(params, asked);
}

Result<std::vector<TextStream>> LoadedModel::submit_choices(TextRequest request) {
  TextPipeline pipeline{.tokenizer = text_.tokenizer, .stop = std::move(request.stop)};
  std::vector<TokenId> prompt;
  const auto* chat = std::get_if<ChatPrompt>(&request.prompt);
  if (chat != nullptr && text_.reasoning && request.split_reasoning) {
    LINNET_ASSIGN(const std::string rendered, render(*chat));
    pipeline.reasoning = text_.reasoning;
    if (opens_reasoning(rendered, *text_.reasoning)) pipeline.start = ReasoningSplitter::Start::kInside;
    LINNET_ASSIGN(prompt, encode_rendered(rendered));
  } else {
    LINNET_ASSIGN(prompt, prompt_tokens(request.prompt));
  }
  const auto prompt_count = static_cast<std::int32_t>(prompt.size());
  Request engine_request{.prompt = std::move(prompt),
                         .sampling = sampling_of(request.sampling),
                         .max_tokens = request.max_tokens ? request.max_tokens : default_max_tokens_,
                         .end_tokens = text_.end_tokens,
                         .ignore_eos = request.ignore_eos,
                         .priority = request.priority,
                         .choices = request.choices,
                         .logit_bias = std::move(request.logit_bias),
                         .time_limit = request.time_limit,
                         .trace_id = std::move(request.trace_id)};
  if (engine_request.sampling.xtc_probability > 0) {
    LINNET_ASSIGN(engine_request.xtc_exempt, text_.tokenizer.encode("\n", {.add_special = false, .parse_special = false}));
  }
  if (request.grammar) {
    LINNET_ASSIGN(Grammar grammar, Grammar::compile(text_.tokenizer, request.grammar->kind, request.grammar->text));
    engine_request.grammar = std::make_shared<const Grammar>(std::move(grammar));
  }
  LINNET_ASSIGN(std::vector<RequestHandle> handles, engine_.submit_choices(std::move(engine_request)));
  std::vector<TextStream> streams;
  for (RequestHandle& handle : handles) {
    streams.emplace_back(std::make_unique<RequestTextSource>(std::move(handle), pipeline, prompt_count));
  }
  return streams;
}

Result<std::vector<TokenId>> LoadedModel::tokenize(std::string_view text) const {
  LINNET_ASSIGN(std::vector<TokenId> tokens, text_.tokenizer.encode(text, {}));
  // A text that writes BOS itself, and a tokenizer that adds it: one is meant.
  const std::optional<TokenId> bos = text_.tokenizer.bos();
  if (text_.tokenizer.adds_bos() && tokens.size() >= 2 && tokens[0] == bos && tokens[1] == bos) tokens.erase(tokens.begin());
  return tokens;
}

std::string LoadedModel::detokenize(std::span<const TokenId> tokens) const { return text_.tokenizer.decode(tokens); }

}  // namespace linnet
