// Writes a text's tokens and their logits to standard output, for measure.py to compare with another arithmetic.
//
// Usage: stream_logits MODEL.gguf TEXT WINDOW
// Output: int32 token count, vocabulary; int32 tokens; then for each window of WINDOW tokens float32 [WINDOW, vocabulary]. Tokens
// beyond the last whole window are left out. A window begins at position 0, so nothing before it is seen.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/executor.h"
#include "base/check.h"
#include "base/mapped_file.h"
#include "runtime/load_vocabulary.h"
#include "sequence_driver.h"
#include "text/tokenizer.h"
#include "weights/model_file.h"

namespace linnet {
namespace {

constexpr std::int32_t kAtOnce = 64;  // tokens a step, each with its logits

template <class T>
T or_exit(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "stream_logits: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  return *std::move(result);
}

template <class T>
void write_all(std::span<const T> values) {
  CHECK(std::fwrite(values.data(), sizeof(T), values.size(), stdout) == values.size());
}

std::vector<TokenId> tokens_of(const ModelFile& model, const std::string& text_path) {
  const MappedFile text = or_exit(MappedFile::open(text_path));
  const Tokenizer tokenizer = or_exit(Tokenizer::from_vocabulary(or_exit(load_gguf_vocabulary(*model.gguf()))));
  return or_exit(tokenizer.encode({reinterpret_cast<const char*>(text.bytes().data()), text.bytes().size()}));
}

int run(const std::string& model_path, const std::string& text_path, std::int32_t window) {
  const std::unique_ptr<ModelFile> model = or_exit(open_model_file(model_path));
  std::vector<TokenId> tokens = tokens_of(*model, text_path);
  tokens.resize(tokens.size() / static_cast<std::size_t>(window) * static_cast<std::size_t>(window));
  const std::unique_ptr<cpu::CpuExecutor> executor =
      or_exit(cpu::CpuExecutor::create(*model, {.context = window, .rows_max = kAtOnce}));
  const std::int32_t head[] = {static_cast<std::int32_t>(tokens.size()), executor->info().vocabulary};
  write_all(std::span<const std::int32_t>(head));
  write_all(std::span<const TokenId>(tokens));
  SequenceDriver driver(*executor);
  for (std::size_t begin = 0; begin < tokens.size(); begin += static_cast<std::size_t>(window)) {
    std::vector<DrivenSequence> sequence{{.prompt_count = window}};
    driver.assign_blocks(sequence, 1);
    for (std::int32_t at = 0; at < window; at += kAtOnce) {
      const std::int32_t count = std::min(kAtOnce, window - at);
      const std::span<const TokenId> part =
          std::span(tokens).subspan(begin + static_cast<std::size_t>(at), static_cast<std::size_t>(count));
      for (const std::vector<float>& row : driver.feed(sequence[0], part, count)) write_all(std::span<const float>(row));
    }
  }
  return 0;
}

}  // namespace
}  // namespace linnet

int main(int argc, char** argv) {
  const int window = argc == 4 ? std::atoi(argv[3]) : 0;
  if (window < 1) {
    std::fputs("usage: stream_logits MODEL.gguf TEXT WINDOW\n", stderr);
    return 2;
  }
  return linnet::run(argv[1], argv[2], window);
}
