#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "hub/local_models.h"
#include "server/commands/command.h"
#include "weights/model_summary.h"

namespace linnet {
namespace {

using Json = nlohmann::ordered_json;

struct InspectFlags {
  std::string model;
  bool json = false;
  bool tensors = false;
};

const char* rope_name(RopeKind kind) {
  switch (kind) {
    case RopeKind::kDefault:
      return "default";
    case RopeKind::kLinear:
      return "linear";
    case RopeKind::kLlama3:
      return "llama3";
    case RopeKind::kYarn:
      return "yarn";
    case RopeKind::kLongRope:
      return "longrope";
  }
  return "unknown";
}

Json config_json(const ModelConfig& config) {
  return {{"layers", config.layers},
          {"hidden", config.hidden},
          {"intermediate", config.intermediate},
          {"heads", config.heads},
          {"kv_heads", config.kv_heads},
          {"head_dim", config.head_dim},
          {"vocabulary", config.vocabulary},
          {"context", config.context_max},
          {"rope", rope_name(config.rope.kind)},
          {"tied_embeddings", config.tied_embeddings}};
}

Json summary_json(const ModelSummary& summary, bool tensors) {
  Json json = {{"path", summary.path},
               {"name", summary.name},
               {"architecture", summary.architecture},
               {"files", summary.files},
               {"runs_here", summary.unsupported.empty()}};
  if (!summary.unsupported.empty()) json["unsupported"] = summary.unsupported;
  if (summary.config) {
    json["parameters"] = summary.parameters;
    json["config"] = config_json(*summary.config);
    json["end_tokens"] = Json::array();
    for (const TokenId token : summary.generation.end_tokens) json["end_tokens"].push_back(static_cast<std::int32_t>(token));
    json["chat_template"] = summary.chat_template;
    json["warnings"] = summary.warnings;
  }
  json["formats"] = Json::array();
  for (const FormatSummary& format : summary.formats) {
    json["formats"].push_back({{"format", format.format}, {"tensors", format.tensors}, {"bytes", format.bytes}});
  }
  if (!tensors) return json;
  json["tensors"] = Json::array();
  for (const TensorSummary& tensor : summary.tensors) {
    json["tensors"].push_back(
        {{"name", tensor.name}, {"format", tensor.format}, {"shape", tensor.shape}, {"bytes", tensor.bytes}});
  }
  return json;
}

// Names come from files of strangers: no control characters reach the terminal.
std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) result += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  return result;
}

std::string shape_of(const TensorSummary& tensor) {
  std::string text;
  for (const std::int64_t size : tensor.shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

void print_config(const ModelSummary& summary) {
  const ModelConfig& config = *summary.config;
  std::printf("parameters     %.1f M\n", static_cast<double>(summary.parameters) / 1e6);
  std::printf("layers         %d of %d, feed-forward %d\n", config.layers, config.hidden, config.intermediate);
  std::printf("heads          %d of %d, for keys and values %d\n", config.heads, config.head_dim, config.kv_heads);
  std::printf("context        %d tokens, rope %s\n", config.context_max, rope_name(config.rope.kind));
  std::printf("vocabulary     %d tokens, head %s\n", config.vocabulary,
              config.tied_embeddings ? "is the embedding" : "of its own");
  std::string ends;
  for (const TokenId token : summary.generation.end_tokens)
    ends += (ends.empty() ? "" : ", ") + std::to_string(static_cast<std::int32_t>(token));
  std::printf("end tokens     %s\n", ends.empty() ? "none" : ends.c_str());
  std::printf("chat template  %s\n", summary.chat_template ? "yes" : "no");
}

void print_summary(const ModelSummary& summary, bool tensors) {
  std::printf("name           %s\n", printable(summary.name).c_str());
  std::printf("path           %s\n", summary.path.c_str());
  std::printf("architecture   %s\n", printable(summary.architecture).c_str());
  if (summary.config) print_config(summary);
  for (const FormatSummary& format : summary.formats) {
    std::printf("weights        %5lld x %s, %.1f MB\n", static_cast<long long>(format.tensors), printable(format.format).c_str(),
                static_cast<double>(format.bytes) / 1e6);
  }
  for (const std::string& warning : summary.warnings) std::printf("warning        %s\n", printable(warning).c_str());
  std::printf("runs here      %s\n", summary.unsupported.empty() ? "yes" : ("no: " + printable(summary.unsupported)).c_str());
  if (!tensors) return;
  for (const TensorSummary& tensor : summary.tensors) {
    std::printf("%-56s %-28s %-20s %12llu\n", printable(tensor.name).c_str(), printable(tensor.format).c_str(),
                shape_of(tensor).c_str(), static_cast<unsigned long long>(tensor.bytes));
  }
}

Status inspect(const InspectFlags& flags) {
  LINNET_ASSIGN(const std::string path, resolve_model(flags.model));
  LINNET_ASSIGN(const ModelSummary summary, summarize_model(path));
  if (flags.json) {
    // Bytes of a stranger's file that are not UTF-8 become U+FFFD.
    std::printf("%s\n", summary_json(summary, flags.tensors).dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    print_summary(summary, flags.tensors);
  }
  return {};
}

}  // namespace

void add_inspect_command(CLI::App& root, RunCommand& run) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* app = root.add_subcommand("inspect", "Say what a model's headers say, also of one that does not run here");
  app->add_option("MODEL", flags->model, "A path (.gguf or folder) or a name of `linnet ls`")->required();
  app->add_flag("--json", flags->json, "One JSON object");
  app->add_flag("--tensors", flags->tensors, "List the tensors too");
  app->callback([flags, &run] { run = [flags] { return inspect(*flags); }; });
}

}  // namespace linnet
