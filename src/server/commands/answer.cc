#include "server/commands/answer.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <variant>

namespace linnet {

void print_piece(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Answer read_answer(TextStream& stream, AnswerWaker& waker, const std::function<void(std::string_view)>& print) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [start] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  Answer answer;
  stream.on_ready([&waker] { waker.wake(); });
  for (;;) {
    if (waker.take_interrupt()) stream.cancel();
    std::optional<TextEvent> event = stream.try_next();
    if (!event) {
      waker.wait();
      continue;
    }
    if (const auto* delta = std::get_if<TextDelta>(&*event)) {
      if (answer.text.empty()) answer.first_token_s = elapsed();
      answer.text += delta->text;
      print(delta->text);
    } else {
      answer.finish = std::get<FinishEvent>(*event);
      answer.total_s = elapsed();
      stream.on_ready({});
      return answer;
    }
  }
}

std::string describe_speed(const Answer& answer) {
  const int tokens = answer.finish.usage.completion_tokens;
  const double decoding_s = answer.total_s - answer.first_token_s;
  char line[160];
  if (tokens > 1 && decoding_s > 0) {
    std::snprintf(line, sizeof line, "%d prompt tokens, first token after %.0f ms, %d tokens at %.1f tokens/s",
                  answer.finish.usage.prompt_tokens, answer.first_token_s * 1e3, tokens, (tokens - 1) / decoding_s);
  } else {
    std::snprintf(line, sizeof line, "%d prompt tokens, %d tokens in %.0f ms", answer.finish.usage.prompt_tokens, tokens,
                  answer.total_s * 1e3);
  }
  return line;
}

}  // namespace linnet
