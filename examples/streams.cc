// Eight requests at once over one model. Each prints what it would print alone: answers do not depend on company.
// Usage: streams MODEL.gguf "a prompt"      the n-th stream continues the prompt "n: a prompt"
#include <linnet/text_engine.h>

#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kStreams = 8;

struct Answer {
  std::string text;
  std::string failure;
};

// Reads one stream on a thread of its own. An event loop would use on_ready() and try_next() instead.
void read_answer(linnet::TextStream stream, Answer& answer) {
  for (;;) {
    const linnet::TextEvent event = stream.next();
    if (const auto* delta = std::get_if<linnet::TextDelta>(&event)) {
      answer.text += delta->text;
    } else if (const auto* finish = std::get_if<linnet::FinishEvent>(&event)) {
      if (finish->error) answer.failure = finish->error->message;
      return;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s MODEL.gguf PROMPT\n", argv[0]);
    return 2;
  }
  const linnet::Result<std::unique_ptr<linnet::TextEngine>> engine = linnet::TextEngine::load({.model = argv[1]});
  if (!engine.ok()) {
    std::fprintf(stderr, "error: %s\n", engine.error().message.c_str());
    return 1;
  }

  std::vector<Answer> answers(kStreams);
  std::vector<std::thread> readers;
  for (int n = 0; n < kStreams; ++n) {
    linnet::TextRequest request{.prompt = std::to_string(n) + ": " + argv[2], .max_tokens = 32};
    request.sampling.temperature = 0.0F;
    linnet::Result<linnet::TextStream> stream = (*engine)->submit(std::move(request));
    if (!stream.ok()) {
      answers[static_cast<std::size_t>(n)].failure = stream.error().message;
      continue;
    }
    readers.emplace_back(read_answer, *std::move(stream), std::ref(answers[static_cast<std::size_t>(n)]));
  }
  for (std::thread& reader : readers) reader.join();

  int failures = 0;
  for (const Answer& answer : answers) {
    if (answer.failure.empty()) {
      std::printf("%s\n---\n", answer.text.c_str());
    } else {
      std::fprintf(stderr, "error: %s\n", answer.failure.c_str());
      ++failures;
    }
  }
  return failures == 0 ? 0 : 1;
}
