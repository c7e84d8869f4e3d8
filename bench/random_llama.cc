// Writes a llama model of about 1.5 billion random weights (Qwen2.5-1.5B's shape; Q4_1, tied Q8_0 embedding) as a GGUF file, for
// speeds of weights that no cache holds. Its answers are noise.
//   random_llama FILE.gguf
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <vector>

#include "weights/testing/tiny_llama.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: random_llama FILE.gguf\n");
    return 2;
  }
  const std::vector<std::byte> bytes = linnet::testing::tiny_llama_gguf({.layers = 28,
                                                                         .hidden = 1536,
                                                                         .intermediate = 8960,
                                                                         .heads = 12,
                                                                         .kv_heads = 2,
                                                                         .head_dim = 128,
                                                                         .vocabulary = 65536,
                                                                         .context = 32768,
                                                                         .layer_dtype = linnet::DType::kQ4_1,
                                                                         .embedding_dtype = linnet::DType::kQ8_0,
                                                                         .merges = true});
  std::ofstream file(argv[1], std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) {
    std::fprintf(stderr, "random_llama: could not write %zu bytes to %s\n", bytes.size(), argv[1]);
    return 1;
  }
}
