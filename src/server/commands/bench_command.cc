#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <variant>
#include <vector>

#include "backends/cpu/kernel_speeds.h"
#include "backends/cpu/probe.h"
#include "linnet/text_engine.h"
#include "server/commands/command.h"
#include "server/commands/model_flags.h"

namespace linnet {
namespace {

using Json = nlohmann::ordered_json;

struct BenchFlags {
  ModelFlags model;
  std::vector<int> prompts = {512, 4096};
  std::vector<int> contexts = {0, 4096};
  int decode_tokens = 128;
  int repeats = 5;
  bool kernels = false;
  bool json = false;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Random ids: what they mean does not matter, that no two prompts share a prefix does.
std::vector<TokenId> random_prompt(int tokens, int vocabulary, std::mt19937_64& random) {
  std::uniform_int_distribution<int> any(0, vocabulary - 1);
  std::vector<TokenId> prompt(static_cast<std::size_t>(tokens));
  for (TokenId& token : prompt) token = static_cast<TokenId>(any(random));
  return prompt;
}

// One request from its submission to its end. Tokens are counted by the engine, since ids drawn at random may give no text.
Result<double> request_seconds(TextEngine& engine, std::vector<TokenId> prompt, int tokens) {
  using Clock = std::chrono::steady_clock;
  TextRequest request{.prompt = std::move(prompt), .max_tokens = tokens, .ignore_eos = true};
  request.sampling.temperature = 0.0F;
  const auto start = Clock::now();
  LINNET_ASSIGN(TextStream stream, engine.submit(std::move(request)));
  for (;;) {
    const TextEvent event = stream.next();
    if (const auto* finish = std::get_if<FinishEvent>(&event)) {
      if (finish->error) return *finish->error;
      return std::chrono::duration<double>(Clock::now() - start).count();
    }
  }
}

// Seconds for a prompt of `tokens` and its first token.
Result<double> prefill_seconds(TextEngine& engine, int tokens, int repeats, std::mt19937_64& random) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    LINNET_ASSIGN(const double seconds, request_seconds(engine, random_prompt(tokens, engine.model().vocabulary, random), 1));
    times.push_back(seconds);
  }
  return median(times);
}

// Seconds for one token with about `context` tokens before it: a long answer's time less a short one's, on the same prompt, whose
// KV a first answer has left in the prompt cache where there is one.
Result<double> decode_seconds(TextEngine& engine, int context, int tokens, int repeats, std::mt19937_64& random) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const std::vector<TokenId> prompt = random_prompt(std::max(context, 1), engine.model().vocabulary, random);
    LINNET_RETURN_IF_ERROR(request_seconds(engine, prompt, 1));
    LINNET_ASSIGN(const double one, request_seconds(engine, prompt, 1));
    LINNET_ASSIGN(const double all, request_seconds(engine, prompt, 1 + tokens));
    times.push_back((all - one) / tokens);
  }
  return median(times);
}

// What the kernels of this backend could reach on this machine; nothing where only MLX knows the device.
std::optional<cpu::MachineProbe> probe(const ModelCard& card) {
  if (card.backend != "cpu") return std::nullopt;
  return cpu::probe_machine(card.threads, card.kernels, card.weight_bytes_per_token);
}

Json measure_prefill(int tokens, double seconds, const ModelCard& card, const std::optional<cpu::MachineProbe>& machine) {
  Json entry{{"tokens", tokens}, {"tok_s", tokens / seconds}};
  if (machine) entry["limit_tok_s"] = machine->matrix_tflop_s * 1e12 / card.flops_per_token;
  return entry;
}

Json measure_decode(int context, int tokens, double seconds, const ModelCard& card,
                    const std::optional<cpu::MachineProbe>& machine) {
  const double bytes = card.weight_bytes_per_token + card.kv_bytes_per_token * (context + tokens / 2.0);
  Json entry{{"context", context}, {"tok_s", 1 / seconds}};
  if (machine) entry["limit_tok_s"] = machine->bandwidth_gb_s * 1e9 / bytes;
  return entry;
}

Json measure_kernels_alone(const ModelCard& card) {
  Json list = Json::array();
  for (const cpu::KernelSpeed& speed : cpu::measure_kernels(card.threads, card.kernels)) {
    list.push_back({{"kernel", speed.kernel},
                    {"rows", speed.rows},
                    {"us", speed.seconds * 1e6},
                    {"gb_s", speed.gb_s()},
                    {"tflop_s", speed.tflop_s()}});
  }
  return list;
}

Result<Json> measure(TextEngine& engine, const BenchFlags& flags) {
  const ModelCard& card = engine.model();
  std::mt19937_64 random(1);
  LINNET_RETURN_IF_ERROR(request_seconds(engine, random_prompt(64, card.vocabulary, random), 16));  // warm-up
  Json prefill = Json::array();
  Json decode = Json::array();
  std::optional<cpu::MachineProbe> machine = probe(card);
  for (const int tokens : flags.prompts) {
    LINNET_ASSIGN(const double seconds, prefill_seconds(engine, tokens, flags.repeats, random));
    prefill.push_back(measure_prefill(tokens, seconds, card, machine));
  }
  for (const int context : flags.contexts) {
    if (machine) machine->bandwidth_gb_s = probe(card)->bandwidth_gb_s;
    LINNET_ASSIGN(const double seconds, decode_seconds(engine, context, flags.decode_tokens, flags.repeats, random));
    decode.push_back(measure_decode(context, flags.decode_tokens, seconds, card, machine));
  }
  Json result{{"model", card.id}, {"backend", card.backend}, {"kernels", card.kernels}, {"threads", card.threads}};
  if (machine) result["machine"] = {{"bandwidth_gb_s", machine->bandwidth_gb_s}, {"matrix_tflop_s", machine->matrix_tflop_s}};
  result["prefill"] = prefill;
  result["decode"] = decode;
  if (flags.kernels) result["kernel_speeds"] = measure_kernels_alone(card);
  return result;
}

void print_table(const Json& result) {
  std::printf("%s, %s backend, %s kernels, %d threads", result["model"].get<std::string>().c_str(),
              result["backend"].get<std::string>().c_str(), result["kernels"].get<std::string>().c_str(),
              result["threads"].get<int>());
  if (result.contains("machine")) {
    std::printf("; this machine now: %.1f GB/s, %.2f TFLOP/s", result["machine"]["bandwidth_gb_s"].get<double>(),
                result["machine"]["matrix_tflop_s"].get<double>());
  }
  std::printf("\n");
  const auto row = [](const char* what, const Json& entry, const char* key) {
    const double rate = entry["tok_s"].get<double>();
    std::printf("%-8s %6d %10.1f tok/s", what, entry[key].get<int>(), rate);
    if (entry.contains("limit_tok_s")) {
      const double limit = entry["limit_tok_s"].get<double>();
      std::printf("   limit %10.1f   %5.1f %%", limit, 100 * rate / limit);
    }
    std::printf("\n");
  };
  for (const Json& entry : result["prefill"]) row("prefill", entry, "tokens");
  for (const Json& entry : result["decode"]) row("decode @", entry, "context");
  if (!result.contains("kernel_speeds")) return;
  for (const Json& entry : result["kernel_speeds"]) {
    std::printf("%-20s %4d rows %10.1f us %8.1f GB/s %8.3f TFLOP/s\n", entry["kernel"].get<std::string>().c_str(),
                entry["rows"].get<int>(), entry["us"].get<double>(), entry["gb_s"].get<double>(), entry["tflop_s"].get<double>());
  }
}

Status check_fits(const BenchFlags& flags, const ModelCard& card) {
  const int longest = std::max(*std::max_element(flags.prompts.begin(), flags.prompts.end()) + 1,
                               *std::max_element(flags.contexts.begin(), flags.contexts.end()) + flags.decode_tokens + 1);
  if (longest <= card.context) return {};
  return Error{ErrorCode::kInvalidArgument,
               "--prompts, --contexts and --decode-tokens ask for " + std::to_string(longest) + " tokens and the context has " +
                   std::to_string(card.context),
               "--prompts"};
}

Status bench(const BenchFlags& flags) {
  LINNET_ASSIGN(LoadOptions options, load_options(flags.model));
  LINNET_ASSIGN(const std::unique_ptr<TextEngine> engine, TextEngine::load(options));
  LINNET_RETURN_IF_ERROR(check_fits(flags, engine->model()));
  if (flags.kernels && engine->model().backend != "cpu") {
    return Error{
        ErrorCode::kInvalidArgument,
        "--kernels measures the CPU backend's kernels, and this model runs on " + engine->model().backend + "; add --backend cpu",
        "--kernels"};
  }
  LINNET_ASSIGN(const Json result, measure(*engine, flags));
  if (flags.json) {
    std::printf("%s\n", result.dump().c_str());
  } else {
    print_table(result);
  }
  return {};
}

}  // namespace

void add_bench_command(CLI::App& root, RunCommand& run) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* app = root.add_subcommand("bench", "Measure prefill and decode beside what the machine allows");
  add_model_flags(*app, flags->model);
  app->add_option("--prompts", flags->prompts, "Prompt lengths to prefill")->delimiter(',')->check(CLI::PositiveNumber);
  app->add_option("--contexts", flags->contexts, "Tokens before the measured decode")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber);
  app->add_option("--decode-tokens", flags->decode_tokens, "Tokens to decode")->check(CLI::PositiveNumber);
  app->add_option("--repeats", flags->repeats, "Runs of each; the median counts")->check(CLI::PositiveNumber);
  app->add_flag("--kernels", flags->kernels, "Also each CPU kernel by itself, in the shapes of a model of 1.5B weights");
  app->add_flag("--json", flags->json, "One JSON object instead of a table");
  app->callback([flags, &run] { run = [flags] { return bench(*flags); }; });
}

}  // namespace linnet
