#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "linnet/text_engine.h"
#include "server/commands/answer.h"
#include "server/commands/command.h"
#include "server/commands/interrupts.h"
#include "server/commands/model_flags.h"

namespace linnet {
namespace {

struct GenerateFlags {
  ModelFlags model;
  std::string prompt;
  bool prompt_given = false;
  std::string system;
  std::vector<std::string> stop;
  bool raw = false;
  bool ignore_eos = false;
};

Status generate(const GenerateFlags& flags) {
  LINNET_ASSIGN(const LoadOptions options, load_options(flags.model));
  const std::string prompt =
      flags.prompt_given ? flags.prompt : std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  AnswerWaker waker;
  // The first signal stops the answer; one that comes before it begins, or a second one, leaves at once.
  std::atomic<bool> answering = false;
  const Interrupts interrupts([&](int signal) {
    if (!answering.exchange(false)) std::_Exit(128 + signal);
    waker.interrupt();
  });
  LINNET_ASSIGN(const std::unique_ptr<TextEngine> engine, TextEngine::load(options));

  TextRequest request;
  request.stop = flags.stop;
  request.ignore_eos = flags.ignore_eos;
  const bool raw = flags.raw || !engine->model().has_chat_template;
  if (raw && !flags.system.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "--system needs a chat template; leave out --raw, or give one with --chat-template FILE", "--system"};
  }
  if (raw) {
    request.prompt = prompt;
  } else {
    auto messages = nlohmann::ordered_json::array();
    if (!flags.system.empty()) messages.push_back({{"role", "system"}, {"content", flags.system}});
    messages.push_back({{"role", "user"}, {"content", prompt}});
    request.prompt = ChatPrompt{.messages_json = messages.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
  }
  LINNET_ASSIGN(TextStream stream, engine->submit(std::move(request)));
  answering = true;
  const Answer answer = read_answer(stream, waker, print_piece);
  std::printf("\n");
  std::fflush(stdout);
  if (answer.finish.error) return *answer.finish.error;
  std::fprintf(stderr, "%s\n", describe_speed(answer).c_str());
  return {};
}

}  // namespace

void add_generate_command(CLI::App& root, RunCommand& run) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* app = root.add_subcommand("generate", "Answer one prompt on the terminal");
  add_model_flags(*app, flags->model);
  CLI::Option* prompt = app->add_option("PROMPT", flags->prompt, "The prompt; absent: read from standard input");
  app->add_option("--system", flags->system, "A system message before the prompt");
  app->add_option("--stop", flags->stop, "Text before which the answer ends (repeatable)");
  app->add_flag("--raw", flags->raw, "Continue the text as it is, without the chat template");
  app->add_flag("--ignore-eos", flags->ignore_eos, "Do not end at the model's end token");
  app->callback([flags, prompt, &run] {
    flags->prompt_given = prompt->count() > 0;
    run = [flags] { return generate(*flags); };
  });
}

}  // namespace linnet
