#include "runtime/load.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/executor.h"
#include "backends/mlx/executor.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/admission.h"
#include "linnet/text_engine.h"
#include "runtime/backend_choice.h"
#include "runtime/load_vocabulary.h"
#include "runtime/loaded_model.h"
#include "runtime/model_outline.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "weights/model_file.h"
#include "weights/text_folder.h"

namespace linnet {
namespace {

Result<std::string> read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::kNotFound, path + ": " + std::strerror(errno), path};
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

Result<Tokenizer> load_tokenizer(const ModelFile& file) {
  if (file.gguf() != nullptr) {
    LINNET_ASSIGN(const Vocabulary vocabulary, load_gguf_vocabulary(*file.gguf()));
    return Tokenizer::from_vocabulary(vocabulary);
  }
  LINNET_ASSIGN(const TextFolder folder, read_text_folder(file.path()));
  return Tokenizer::from_json(folder.tokenizer_json, folder.tokenizer_config_json);
}

// What the model says in text: tokenizer, template, end tokens.
Result<ModelText> load_text(const ModelFile& file, const LoadOptions& options) {
  LINNET_ASSIGN(Tokenizer tokenizer, load_tokenizer(file));
  std::vector<TokenId> ends = file.generation().end_tokens;
  if (tokenizer.eos() && std::find(ends.begin(), ends.end(), *tokenizer.eos()) == ends.end()) ends.push_back(*tokenizer.eos());
  ModelText text{.tokenizer = std::move(tokenizer), .chat_template = {}, .end_tokens = std::move(ends)};
  std::string source(file.chat_template());
  if (!options.chat_template_file.empty()) {
    LINNET_ASSIGN(source, read_text_file(options.chat_template_file));
  }
  if (source.empty() && !options.chat_template_file.empty()) {
    return Error{ErrorCode::kCorrupt, options.chat_template_file + " is empty; a chat template is Jinja text", "--chat-template"};
  }
  text.reasoning = find_reasoning_markers(source);
  if (!options.reasoning_parser.empty()) {
    LINNET_ASSIGN(text.reasoning, reasoning_markers_named(options.reasoning_parser));
  }
  if (!source.empty()) {
    LINNET_ASSIGN(text.chat_template, ChatTemplate::compile(std::move(source)));
  }
  return text;
}

// An executor with what a card says of it.
struct LoadedExecutor {
  std::unique_ptr<Executor> executor;
  ModelCard card;
};

Result<LoadedExecutor> load_cpu(const ModelFile& file, const LoadOptions& options, cpu::Pool* pool) {
  LINNET_ASSIGN(std::unique_ptr<cpu::CpuExecutor> executor,
                cpu::CpuExecutor::create(file, {.pool = pool,
                                                .threads = options.threads,
                                                .pin_threads = options.pin_threads,
                                                .kernels = nullptr,
                                                .context = options.context,
                                                .rows_max = options.engine.max_rows,
                                                .memory_budget_bytes = options.memory_budget_bytes}));
  ModelCard card{.backend = "cpu",
                 .kernels = std::string(executor->kernels().name),
                 .threads = executor->threads(),
                 .weight_bytes_per_token = executor->token_cost().weight_bytes,
                 .kv_bytes_per_token = executor->token_cost().kv_bytes,
                 .flops_per_token = executor->token_cost().flops};
  return LoadedExecutor{.executor = std::move(executor), .card = std::move(card)};
}

Result<LoadedExecutor> load_mlx(const ModelFile& file, const LoadOptions& options) {
  using mlx_backend::MlxExecutor;
  LINNET_ASSIGN(std::unique_ptr<MlxExecutor> executor,
                MlxExecutor::create(file, {.device = options.device,
                                           .context = options.context,
                                           .rows_max = options.engine.max_rows,
                                           .memory_budget_bytes = options.memory_budget_bytes}));
  ModelCard card{.backend = "mlx",
                 .kernels = executor->on_gpu() ? "mlx-gpu" : "mlx-cpu",
                 .threads = 1,
                 .weight_bytes_per_token = executor->token_cost().weight_bytes,
                 .kv_bytes_per_token = executor->token_cost().kv_bytes,
                 .flops_per_token = executor->token_cost().flops};
  return LoadedExecutor{.executor = std::move(executor), .card = std::move(card)};
}

// Options that no part below may be handed.
Status check_options(const LoadOptions& options) {
  const auto at_least = [](const char* flag, std::int64_t value, std::int64_t least) -> Status {
    if (value >= least) return {};
    return Error{ErrorCode::kInvalidArgument,
                 std::string(flag) + " is " + std::to_string(value) + "; it must be at least " + std::to_string(least), flag};
  };
  LINNET_RETURN_IF_ERROR(at_least("--threads", options.threads, 0));
  LINNET_RETURN_IF_ERROR(at_least("--context", options.context, 0));
  LINNET_RETURN_IF_ERROR(at_least("--max-tokens", options.max_tokens.value_or(0), 0));
  LINNET_RETURN_IF_ERROR(at_least("--max-rows", options.engine.max_rows, 1));
  LINNET_RETURN_IF_ERROR(at_least("--max-waiting", options.engine.max_waiting, 1));
  LINNET_RETURN_IF_ERROR(at_least("--max-gap-ms", options.engine.max_gap_ms, 1));
  return at_least("outbox_events_max", options.engine.outbox_events_max, 1);
}

}  // namespace

Result<std::unique_ptr<TextEngine>> TextEngine::load(const LoadOptions& options) { return load_model(options, nullptr); }

Result<std::unique_ptr<cpu::Pool>> make_kernel_pool(const LoadOptions& options) {
  LINNET_RETURN_IF_ERROR(check_options(options));
  LINNET_ASSIGN(const BackendKind backend, choose_backend(options));
  if (backend != BackendKind::kCpu) return std::unique_ptr<cpu::Pool>();
  return std::make_unique<cpu::Pool>(cpu::PoolOptions{.threads = options.threads, .pin = options.pin_threads});
}

Result<std::unique_ptr<TextEngine>> load_model(const LoadOptions& options, cpu::Pool* pool) {
  LINNET_RETURN_IF_ERROR(check_options(options));
  LINNET_ASSIGN(const BackendKind backend, choose_backend(options));
  LINNET_ASSIGN(const std::unique_ptr<ModelFile> file, open_model_file(options.model));
  for (const std::string& warning : file->warnings()) log_warning(warning);
  // The tokenizer is built beside the repacking of weights; both only read the file.
  std::future<Result<ModelText>> text = std::async(std::launch::async, [&] { return load_text(*file, options); });
  Result<LoadedExecutor> executor = backend == BackendKind::kMlx ? load_mlx(*file, options) : load_cpu(*file, options, pool);
  Result<ModelText> loaded_text = text.get();
  if (!loaded_text.ok()) return loaded_text.error();
  if (!executor.ok()) return executor.error();

  const SamplingParams sampling = overridden(overridden({}, file->generation().sampling), options.sampling);
  LINNET_RETURN_IF_ERROR(check_sampling(sampling));
  ModelCard card = std::move(executor->card);
  card.id = model_id(*file, options);
  card.architecture = file->config().architecture;
  card.created = SystemClock().unix_time().count();
  card.context = executor->executor->info().context_max;
  card.vocabulary = executor->executor->info().vocabulary;
  card.has_chat_template = loaded_text->chat_template.has_value();
  card.reasons = loaded_text->reasoning.has_value();
  if (card.has_chat_template) {
    const std::string& source = loaded_text->chat_template->source();
    card.reasoning_switch = source.find("enable_thinking") != std::string::npos;
    card.reasoning_effort = source.find("reasoning_effort") != std::string::npos;
  }
  return std::unique_ptr<TextEngine>(
      std::make_unique<LoadedModel>(std::move(card), *std::move(loaded_text), std::move(executor->executor), options, sampling));
}

}  // namespace linnet
