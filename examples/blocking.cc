// One request, run to its end by one call.
// Usage: blocking MODEL.gguf "a prompt"
#include <linnet/text_engine.h>

#include <cstdio>
#include <memory>

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

  linnet::TextRequest request{.prompt = argv[2], .max_tokens = 32};
  request.sampling.temperature = 0.0F;  // always the most likely token
  const linnet::Result<linnet::TextAnswer> answer = (*engine)->run(std::move(request));
  if (!answer.ok()) {
    std::fprintf(stderr, "error: %s\n", answer.error().message.c_str());
    return 1;
  }
  std::printf("%s\n", answer->content.c_str());
  std::fprintf(stderr, "%d prompt tokens, %d tokens\n", answer->finish.usage.prompt_tokens,
               answer->finish.usage.completion_tokens);
}
