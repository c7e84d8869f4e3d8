// An agent's conversation, turn by turn: how long the first token takes with the prompt cache and without it.
//   turns_bench MODEL [TURNS] [TOKENS]
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "linnet/text_engine.h"

namespace linnet {
namespace {

constexpr std::int32_t kAnswerTokens = 40;

struct Turn {
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;
  double cold_ms = 0;
  double warm_ms = 0;
};

// What a tool might give back: lines with names and numbers, about `tokens` long.
std::string tool_result(Rng& rng, std::int32_t tokens) {
  constexpr std::string_view kNames[] = {"river", "harbour", "engine", "ledger", "signal", "garden", "window", "forest"};
  std::string text = "Result of the tool:";
  for (std::int32_t line = 0; line < tokens / 8; ++line) {
    text += " " + std::string(kNames[rng.below(8)]) + " of " + std::string(kNames[rng.below(8)]) + " " +
            std::to_string(rng.below(100)) + ";";
  }
  return text;
}

struct Timed {
  double first_ms = 0;
  std::vector<TokenId> tokens;
  std::int32_t cached = 0;
};

Result<Timed> ask(TextEngine& engine, Request request, const Clock& clock) {
  const Clock::Duration begin = clock.now();
  LINNET_ASSIGN(RequestHandle handle, engine.submit_tokens(std::move(request)));
  Timed timed;
  while (true) {
    const Event event = handle.next();
    if (timed.first_ms == 0) timed.first_ms = std::chrono::duration<double, std::milli>(clock.now() - begin).count();
    if (const auto* finish = std::get_if<FinishEvent>(&event)) {
      if (finish->error) return *finish->error;
      timed.cached = finish->usage.cached_tokens;
      return timed;
    }
    timed.tokens.push_back(std::get<TokenEvent>(event).token);
  }
}

Result<std::vector<Turn>> converse(TextEngine& engine, std::int32_t turns, std::int32_t tokens) {
  const SystemClock clock;
  Rng rng(1);
  std::string messages = R"([{"role":"system","content":"You use tools and answer briefly."})";
  std::vector<Turn> result;
  const std::int32_t tool_tokens = std::max(8, tokens / turns - kAnswerTokens - 10);
  for (std::int32_t number = 0; number < turns; ++number) {
    messages += R"(,{"role":"user","content":")" + tool_result(rng, tool_tokens) + "\"}";
    LINNET_ASSIGN(const std::vector<TokenId> prompt, engine.prompt_tokens(ChatPrompt{.messages_json = messages + "]"}));
    const Request cold{.prompt = prompt, .sampling = {.temperature = 0}, .max_tokens = 1, .prompt_cache = false};
    Request warm = cold;
    warm.max_tokens = kAnswerTokens;
    warm.ignore_eos = true;
    warm.prompt_cache = true;
    LINNET_ASSIGN(const Timed without, ask(engine, cold, clock));
    LINNET_ASSIGN(const Timed with, ask(engine, warm, clock));
    result.push_back({.prompt_tokens = static_cast<std::int32_t>(prompt.size()),
                      .cached_tokens = with.cached,
                      .cold_ms = without.first_ms,
                      .warm_ms = with.first_ms});
    // Its words, without what JSON would have to escape.
    std::string said = engine.detokenize(with.tokens);
    std::erase_if(said, [](char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20; });
    messages += R"(,{"role":"assistant","content":")" + said + "\"}";
  }
  return result;
}

Status run(const std::string& model, std::int32_t turns, std::int32_t tokens) {
  LINNET_ASSIGN(const std::unique_ptr<TextEngine> engine, TextEngine::load({.model = model}));
  LINNET_ASSIGN(const std::vector<Turn> all, converse(*engine, turns, tokens));
  std::printf("turn  prompt  cached  first token, ms: cold     warm\n");
  double cold_ms = 0;
  double warm_ms = 0;
  for (std::size_t index = 0; index < all.size(); ++index) {
    const Turn& turn = all[index];
    std::printf("%4zu %7d %7d %20.1f %8.1f\n", index + 1, turn.prompt_tokens, turn.cached_tokens, turn.cold_ms, turn.warm_ms);
    cold_ms += turn.cold_ms;
    warm_ms += turn.warm_ms;
  }
  std::printf("all turns: cold %.0f ms, warm %.0f ms\n", cold_ms, warm_ms);
  return {};
}

std::int32_t number_or(int count, char** arguments, int index, std::int32_t otherwise) {
  if (index >= count) return otherwise;
  const std::string_view text = arguments[index];
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number >= 1 ? number : otherwise;
}

}  // namespace
}  // namespace linnet

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: turns_bench MODEL.gguf [TURNS] [TOKENS]\n");
    return 2;
  }
  const linnet::Status done =
      linnet::run(arguments[1], linnet::number_or(count, arguments, 2, 20), linnet::number_or(count, arguments, 3, 7500));
  if (done.ok()) return 0;
  std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return 1;
}
