// Writes a text's tokens and their logits to standard output, for measure.py to compare with another arithmetic.
//
// Usage: stream_logits cpu|mlx MODEL.gguf TEXT WINDOW [PART PARTS]
// Output: int32 token count, vocabulary; int32 tokens; then for each window of WINDOW tokens float32 [WINDOW, vocabulary]. Tokens
// beyond the last whole window are left out. A window begins at position 0, so nothing before it is seen. With PART (from 0) and
// PARTS only the logits of window PART, PART + PARTS, ...
// mlx: on the CPU, the reference path.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/executor.h"
#include "backends/mlx/executor.h"
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

struct Part {
  std::size_t first = 0;
  std::size_t step = 1;
};

template <class BackendExecutor>
void write_logits(BackendExecutor& executor, std::span<const TokenId> tokens, std::int32_t window, Part part) {
  SequenceDriver driver(executor);
  const auto size = static_cast<std::size_t>(window);
  for (std::size_t begin = part.first * size; begin < tokens.size(); begin += part.step * size) {
    std::vector<DrivenSequence> sequence{{.prompt_count = window}};
    driver.assign_blocks(sequence, 1);
    for (std::int32_t at = 0; at < window; at += kAtOnce) {
      const std::int32_t count = std::min(kAtOnce, window - at);
      const std::span<const TokenId> piece =
          tokens.subspan(begin + static_cast<std::size_t>(at), static_cast<std::size_t>(count));
      for (const std::vector<float>& row : driver.feed(sequence[0], piece, count)) write_all(std::span<const float>(row));
    }
  }
}

struct Arguments {
  std::string_view backend;
  std::string model, text;
  std::int32_t window = 0;
  Part part;
};

int run(const Arguments& arguments) {
  const std::unique_ptr<ModelFile> model = or_exit(open_model_file(arguments.model));
  std::vector<TokenId> tokens = tokens_of(*model, arguments.text);
  const auto size = static_cast<std::size_t>(arguments.window);
  tokens.resize(tokens.size() / size * size);
  const std::int32_t head[] = {static_cast<std::int32_t>(tokens.size()), model->config().vocabulary};
  write_all(std::span<const std::int32_t>(head));
  write_all(std::span<const TokenId>(tokens));
  if (arguments.backend == "mlx") {
    const auto executor = or_exit(
        mlx_backend::MlxExecutor::create(*model, {.device = DeviceKind::kCpu, .context = arguments.window, .rows_max = kAtOnce}));
    write_logits(*executor, tokens, arguments.window, arguments.part);
  } else {
    const auto executor = or_exit(cpu::CpuExecutor::create(*model, {.context = arguments.window, .rows_max = kAtOnce}));
    write_logits(*executor, tokens, arguments.window, arguments.part);
  }
  return 0;
}

}  // namespace
}  // namespace linnet

int main(int argc, char** argv) {
  const bool parts = argc == 7;
  const std::string_view backend = argc > 1 ? argv[1] : "";
  const int window = argc >= 5 ? std::atoi(argv[4]) : 0;
  if ((argc != 5 && !parts) || window < 1 || (backend != "cpu" && backend != "mlx") || (parts && std::atoi(argv[6]) < 1)) {
    std::fputs("usage: stream_logits cpu|mlx MODEL.gguf TEXT WINDOW [PART PARTS]\n", stderr);
    return 2;
  }
  linnet::Part part;
  if (parts) part = {static_cast<std::size_t>(std::atoi(argv[5])), static_cast<std::size_t>(std::atoi(argv[6]))};
  return linnet::run({backend, argv[2], argv[3], window, part});
}
