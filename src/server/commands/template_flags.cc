#include "server/commands/template_flags.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace linnet {

void add_template_flags(CLI::App& app, TemplateFlags& flags) {
  app.add_option("--chat-template-args", flags.args, "Variables of the chat template, a JSON object; requests may set others")
      ->envname("LINNET_CHAT_TEMPLATE_ARGS");
  app.add_option("--reasoning,--thinking", flags.reasoning,
                 "Whether models that can think do so unasked: auto (their own default), on, off")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->envname("LINNET_REASONING");
}

Result<std::string> template_args(const TemplateFlags& flags) {
  nlohmann::ordered_json args = nlohmann::ordered_json::object();
  if (!flags.args.empty()) args = nlohmann::ordered_json::parse(flags.args, nullptr, /*allow_exceptions=*/false);
  if (!args.is_object()) {
    return Error{ErrorCode::kInvalidArgument, "--chat-template-args must be a JSON object such as {\"enable_thinking\": false}",
                 "--chat-template-args"};
  }
  if (flags.reasoning != "auto") args["enable_thinking"] = flags.reasoning == "on";
  return args.empty() ? std::string() : args.dump();
}

}  // namespace linnet
