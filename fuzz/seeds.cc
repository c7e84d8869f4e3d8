// Writes small right files for the fuzz targets: linnet_fuzz_seeds FOLDER makes FOLDER/<target>/<seed>.
#include <cstdio>
#include <filesystem>
#include <string>

#include "weights/testing/tiny_folder.h"
#include "weights/testing/tiny_llama.h"

namespace {

namespace fs = std::filesystem;
using linnet::DType;
using linnet::testing::TempFile;
using linnet::testing::TempFolder;
using linnet::testing::TinyFolder;
using linnet::testing::TinyLlama;

// The least that is a model: a few kilobytes, so that mutations hit tables and not weights.
TinyLlama least(DType dtype) {
  return {.layers = 1,
          .hidden = 32,
          .intermediate = 32,
          .heads = 1,
          .kv_heads = 1,
          .head_dim = 32,
          .vocabulary = 260,
          .layer_dtype = dtype,
          .embedding_dtype = dtype,
          .tied = dtype != DType::kF16};
}

void put(const fs::path& from, const fs::path& to) {
  fs::create_directories(to.parent_path());
  fs::copy_file(from, to, fs::copy_options::overwrite_existing);
}

void write_folder(const fs::path& out, const std::string& name, const TinyFolder& options) {
  const TempFolder folder = linnet::testing::tiny_llama_folder(options);
  const fs::path root(folder.path());
  put(root / "config.json", out / "config" / name);
  put(root / "tokenizer.json", out / "tokenizer" / name);
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    if (entry.path().extension() == ".safetensors")
      put(entry.path(), out / "safetensors" / (name + entry.path().stem().string()));
  }
  if (fs::exists(root / "model.safetensors.index.json")) put(root / "model.safetensors.index.json", out / "shard_index" / name);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const fs::path out(argv[1]);
  write_folder(out, "plain", {.shape = least(DType::kBF16)});
  write_folder(out, "affine", {.shape = least(DType::kBF16), .bits = 4, .quantize_embedding = false, .shards = 2});
  write_folder(out, "biases",
               {.shape = least(DType::kF16),
                .attention_bias = true,
                .mlp_bias = true,
                .shards = 3,
                .config = R"({"rope_scaling":{"rope_type":"yarn","factor":4,"original_max_position_embeddings":128}})"});
  write_folder(out, "nested",
               {.shape = least(DType::kF32),
                .config = R"({"text_config":{"model_type":"llama","rope_parameters":{"rope_type":"llama3","factor":8,
                  "low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":64,"rope_theta":500000}}})"});
  for (const DType dtype : {DType::kF16, DType::kQ4_0, DType::kQ8_0}) {
    TinyLlama options = least(dtype);
    options.rope_divisors = dtype == DType::kQ8_0;
    const TempFile file = linnet::testing::tiny_llama_file(options);
    put(file.path(), out / "gguf" / std::string(linnet::dtype_name(dtype)));
  }
  return 0;
}
