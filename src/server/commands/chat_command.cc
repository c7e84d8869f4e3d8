#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
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

using Json = nlohmann::ordered_json;

struct ChatFlags {
  ModelFlags model;
  std::string system;
};

std::string dump(const Json& messages) { return messages.dump(-1, ' ', false, Json::error_handler_t::replace); }

// One turn: the answer is printed and joins the history. An interrupted answer stays in it as far as it was said.
Status answer_turn(TextEngine& engine, AnswerWaker& waker, Json& messages) {
  LINNET_ASSIGN(TextStream stream, engine.submit(TextRequest{.prompt = ChatPrompt{.messages_json = dump(messages)}}));
  const Answer answer = read_answer(stream, waker, print_piece);
  std::printf("\n");
  std::fflush(stdout);
  if (answer.finish.error) return *answer.finish.error;
  messages.push_back({{"role", "assistant"}, {"content", answer.text}});
  std::fprintf(stderr, "(%s%s)\n", describe_speed(answer).c_str(),
               answer.finish.reason == FinishReason::kCancelled ? ", stopped" : "");
  return {};
}

Status chat(const ChatFlags& flags) {
  LINNET_ASSIGN(const LoadOptions options, load_options(flags.model));
  AnswerWaker waker;
  std::atomic<bool> loaded = false;
  std::atomic<bool> answering = false;
  const Interrupts interrupts([&](int signal) {
    if (signal == SIGTERM || !loaded) std::_Exit(128 + signal);
    if (answering) {
      waker.interrupt();
    } else {
      std::fprintf(stderr, "\n(Ctrl-D leaves, /clear forgets the conversation)\n> ");
    }
  });
  LINNET_ASSIGN(const std::unique_ptr<TextEngine> engine, TextEngine::load(options));
  if (!engine->model().has_chat_template) {
    return Error{ErrorCode::kInvalidArgument,
                 engine->model().id + " has no chat template; give one with --chat-template FILE, or use `linnet generate`",
                 "--chat-template"};
  }
  loaded = true;
  const Json opening = flags.system.empty() ? Json::array() : Json::array({{{"role", "system"}, {"content", flags.system}}});
  Json messages = opening;
  std::fprintf(stderr, "%s. Ctrl-C stops an answer, Ctrl-D leaves, /clear forgets the conversation.\n",
               engine->model().id.c_str());
  for (std::string line;;) {
    std::fprintf(stderr, "> ");
    if (!std::getline(std::cin, line)) break;
    if (line.empty()) continue;
    if (line == "/clear") {
      messages = opening;
      continue;
    }
    messages.push_back({{"role", "user"}, {"content", line}});
    waker.take_interrupt();  // of a Ctrl-C that came too late for the last answer
    answering = true;
    const Status status = answer_turn(*engine, waker, messages);
    answering = false;
    if (!status.ok()) {
      std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
      messages.erase(messages.end() - 1);
    }
  }
  std::fprintf(stderr, "\n");
  return {};
}

}  // namespace

void add_chat_command(CLI::App& root, RunCommand& run) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App* app = root.add_subcommand("chat", "Talk with a model on the terminal");
  add_model_flags(*app, flags->model);
  app->add_option("--system", flags->system, "A system message before the conversation");
  app->callback([flags, &run] { run = [flags] { return chat(*flags); }; });
}

}  // namespace linnet
