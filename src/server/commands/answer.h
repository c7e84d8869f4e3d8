// Printing one answer as it comes, on the terminal.
#pragma once

#include <atomic>
#include <functional>
#include <semaphore>
#include <string>
#include <string_view>

#include "linnet/text_engine.h"

namespace linnet {

// Wakes the printing thread: by the engine when there is something new, by Ctrl-C to stop the answer.
class AnswerWaker {
 public:
  void wake() { semaphore_.release(); }
  void interrupt() {
    interrupted_ = true;
    wake();
  }
  // True once for each interrupt().
  bool take_interrupt() { return interrupted_.exchange(false); }
  void wait() { semaphore_.acquire(); }

 private:
  std::counting_semaphore<> semaphore_{0};
  std::atomic<bool> interrupted_ = false;
};

struct Answer {
  std::string text;
  FinishEvent finish;
  double first_token_s = 0;  // from the call to the first piece of text
  double total_s = 0;
};

// Writes a piece of an answer to stdout, at once.
void print_piece(std::string_view text);

// Hands each piece of text to `print` and returns the whole; an interrupt cancels the answer.
Answer read_answer(TextStream& stream, AnswerWaker& waker, const std::function<void(std::string_view)>& print);

// "37 prompt tokens, first token after 31 ms, 42 tokens at 250.1 tokens/s"
std::string describe_speed(const Answer& answer);

}  // namespace linnet
