// Llama models of a few kilobytes with random weights, as GGUF files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weights/tensor.h"
#include "weights/testing/gguf_writer.h"

namespace linnet::testing {

// The defaults give a model of 2 layers and about 300 KiB. Sizes of rows are multiples of the formats' blocks (32 or 256).
struct TinyLlama {
  std::int32_t layers = 2;
  std::int32_t hidden = 64;
  std::int32_t intermediate = 96;
  std::int32_t heads = 4;
  std::int32_t kv_heads = 2;
  std::int32_t head_dim = 32;
  std::int32_t vocabulary = 320;  // >= 256 bytes + 4 special tokens
  std::int32_t context = 512;
  DType layer_dtype = DType::kQ4_0;      // of the layers' matrices
  DType embedding_dtype = DType::kQ8_0;  // of the embedding and the head
  bool tied = true;                      // no head of its own
  bool merges = false;                   // the last token is "th", which the one merge makes: what loads a tokenizer wants one
  bool biases = false;                   // of all linear layers of a block but the output projection
  bool rope_divisors = false;            // a rope_freqs.weight, as Llama 3 files have it
  float rope_theta = 10000.0F;
  std::uint64_t seed = 1;
};

// Byte-level vocabulary: ids 0 .. 255 are the bytes as "gpt2" files write them, then <|bos|>, <|eos|>, <|im_start|>, <|im_end|>,
// then
// <|unused_n|>; no merges. Equal options give equal bytes.
GgufWriter tiny_llama_writer(const TinyLlama& options);
std::vector<std::byte> tiny_llama_gguf(const TinyLlama& options);
TempFile tiny_llama_file(const TinyLlama& options);

// The names of the tokens, and what turns messages into text.
std::vector<std::string> tiny_vocabulary(std::int32_t size);
inline constexpr char kTinyChatTemplate[] =
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

// Random blocks of a format: numbers of about the given standard deviation.
std::vector<std::byte> random_tensor(DType dtype, std::int64_t rows, std::int64_t cols, float deviation, std::uint64_t seed);

}  // namespace linnet::testing
