#include "server/commands/model_flags.h"

#include <CLI/CLI.hpp>
#include <cstring>
#include <map>
#include <vector>

#include "hub/local_models.h"

namespace linnet {
namespace {

constexpr int kThreadsMax = 1024;
constexpr int kRowsMax = 1024;
constexpr int kContextMax = 1 << 24;

template <class T>
std::function<void(const T&)> into(std::optional<T>& target) {
  return [&target](const T& value) { target = value; };
}

constexpr const char* kNotYet = "is not offered yet";

// Flags that are known and refused: by name and with the reason, rather than as unknown.
struct RefusedFlag {
  const char* names;
  const char* reason;
};

constexpr RefusedFlag kRefused[] = {
    {"--adapter,--adapter-path", kNotYet},
    {"--draft-tokens,--num-draft-tokens", kNotYet},
    {"--draft-model", kNotYet},
    {"--tool-parser", kNotYet},
    {"--ssd-cache", kNotYet},
    {"--ssd-cache-max", kNotYet},
    {"--ssd-demote-idle", kNotYet},
    {"--checkpoint-every,--generation-checkpoint", kNotYet},
    {"--compat", kNotYet},
    {"--move-volatile-line", kNotYet},
    // of mlx_lm.server
    {"--prompt-concurrency", "has no meaning here: prompts are prefilled side by side as --max-rows and --max-gap-ms allow"},
    {"--prefill-step-size", "has no meaning here: chunks are as long as --max-gap-ms allows"},
    {"--prompt-cache-size", "has no meaning here: prefixes are bounded by their bytes, --prompt-cache"},
    {"--pipeline", "has no meaning here: one host runs the whole model"},
    {"--use-default-chat-template", "is not offered: name a template with --chat-template FILE"},
};

void refuse(CLI::App& app) {
  for (const auto& [names, reason] : kRefused) {
    const auto fail = [name = std::string(names, std::strcspn(names, ",")), reason = reason](const std::vector<std::string>&) {
      throw CLI::ValidationError(name, reason);
    };
    app.add_option_function<std::vector<std::string>>(names, fail)->expected(0, 1)->group("");  // not in the help
  }
  app.add_flag("--trust-remote-code")->group("");  // no code of a model's is ever run
}

}  // namespace

void add_model_flags(CLI::App& app, ModelFlags& flags) {
  LoadOptions& options = flags.options;
  refuse(app);
  app.add_option("MODEL,--model", flags.model,
                 "A path (.gguf or folder), a name of `linnet ls` or an unambiguous part of one, demo, demo-gemma")
      ->required();
  app.add_option("--backend", flags.backend, "auto (mlx if there is a GPU, else cpu), cpu (own kernels), mlx")
      ->check(CLI::IsMember({"auto", "cpu", "mlx"}))
      ->envname("LINNET_BACKEND");
  app.add_option("--device", flags.device, "Of the mlx backend: auto (a GPU if there is one), cpu (the reference path), gpu")
      ->check(CLI::IsMember({"auto", "cpu", "gpu"}))
      ->envname("LINNET_DEVICE");
  app.add_option("--threads", options.threads, "Kernel threads; 0: as many as affinity and cgroup allow")
      ->check(CLI::Range(0, kThreadsMax))
      ->envname("LINNET_THREADS");
  app.add_flag("--no-pin", flags.no_pin, "Do not pin kernel threads to CPUs")->envname("LINNET_NO_PIN");
  app.add_option("--context", options.context, "Tokens of prompt and answer; 0: the model's own, within memory")
      ->check(CLI::Range(0, kContextMax))
      ->envname("LINNET_CONTEXT");
  app.add_option("--memory-budget", options.memory_budget_bytes, "Weights, KV and scratch together, e.g. 12G; 0: 75 % of RAM")
      ->transform(CLI::AsSizeValue(false))
      ->envname("LINNET_MEMORY_BUDGET");
  app.add_option_function<std::uint64_t>("--prompt-cache,--prompt-cache-bytes", into(options.engine.prompt_cache_bytes),
                                         "KV of ended requests to keep, e.g. 2G; 0: none; absent: all that running ones leave")
      ->transform(CLI::AsSizeValue(false))
      ->envname("LINNET_PROMPT_CACHE");
  app.add_option("--max-rows,--batch,--decode-concurrency", options.engine.max_rows, "Requests that run at the same time")
      ->check(CLI::Range(1, kRowsMax))
      ->envname("LINNET_MAX_ROWS");
  app.add_option("--max-waiting", options.engine.max_waiting, "Requests that wait; more are answered 429")
      ->check(CLI::Range(1, 1 << 20))
      ->envname("LINNET_MAX_WAITING");
  app.add_option("--max-gap-ms", options.engine.max_gap_ms, "A running answer's longest wait while prompts are prefilled")
      ->check(CLI::Range(1, 60'000))
      ->envname("LINNET_MAX_GAP_MS");
  app.add_option("--kv", flags.kv, "KV format: f16 (others are not offered yet)")->envname("LINNET_KV");
  app.add_option("--draft", flags.draft, "Speculation: not offered yet; auto and off are the same")->envname("LINNET_DRAFT");
  app.add_option("--chat-template", options.chat_template_file, "A Jinja file that replaces the model's own template")
      ->check(CLI::ExistingFile)
      ->envname("LINNET_CHAT_TEMPLATE");
  app.add_option("--reasoning-parser", options.reasoning_parser,
                 "What the reasoning part of answers stands between: think, magistral, ..., none; default: from the template")
      ->envname("LINNET_REASONING_PARSER");
  app.add_option_function<float>("--temp,--temperature", into(options.sampling.temperature), "Default temperature; 0: greedy")
      ->check(CLI::Range(0.0F, 100.0F))
      ->envname("LINNET_TEMP");
  app.add_option_function<float>("--top-p", into(options.sampling.top_p), "Default top_p")
      ->check(CLI::Range(0.0F, 1.0F))
      ->envname("LINNET_TOP_P");
  app.add_option_function<std::int32_t>("--top-k", into(options.sampling.top_k), "Default top_k; 0: off")
      ->check(CLI::NonNegativeNumber)
      ->envname("LINNET_TOP_K");
  app.add_option_function<float>("--min-p", into(options.sampling.min_p), "Default min_p")
      ->check(CLI::Range(0.0F, 1.0F))
      ->envname("LINNET_MIN_P");
  app.add_option_function<std::int32_t>("--max-tokens", into(options.max_tokens),
                                        "Default length of an answer; absent: up to the context")
      ->check(CLI::NonNegativeNumber)
      ->envname("LINNET_MAX_TOKENS");
  app.add_option_function<std::uint64_t>("--seed", into(options.sampling.seed), "Default seed")->envname("LINNET_SEED");
}

Result<LoadOptions> load_options(const ModelFlags& flags) {
  if (flags.kv != "f16") {
    return Error{ErrorCode::kUnsupported, "--kv " + flags.kv + " is not offered; the KV cache is f16", "--kv"};
  }
  if (flags.draft != "auto" && flags.draft != "off") {
    return Error{ErrorCode::kUnsupported, "--draft " + flags.draft + " is not offered; use auto or off", "--draft"};
  }
  static const std::map<std::string, BackendKind> kBackends = {
      {"auto", BackendKind::kAuto}, {"cpu", BackendKind::kCpu}, {"mlx", BackendKind::kMlx}};
  static const std::map<std::string, DeviceKind> kDevices = {
      {"auto", DeviceKind::kAuto}, {"cpu", DeviceKind::kCpu}, {"gpu", DeviceKind::kGpu}};
  LoadOptions options = flags.options;
  options.backend = kBackends.at(flags.backend);
  options.device = kDevices.at(flags.device);
  options.pin_threads = !flags.no_pin;
  LINNET_ASSIGN(options.model, resolve_model(flags.model));
  return options;
}

}  // namespace linnet
