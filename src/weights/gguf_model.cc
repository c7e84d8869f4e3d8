#include "weights/gguf_model.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <set>
#include <utility>

#include "weights/config_limits.h"
#include "weights/gguf_config.h"
#include "weights/gguf_names.h"
#include "weights/gguf_vocabulary.h"
#include "weights/quote.h"
#include "weights/tensor_places.h"

namespace linnet {
namespace {

constexpr std::int64_t kControlToken = 3;  // of GgufVocabulary::types
constexpr std::int64_t kPartsMax = 1024;

// Control tokens that end a turn or a text, for the many files that name only one of them as eos.
constexpr std::array<std::string_view, 9> kEndNames = {
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|end_of_text|>", "<|endoftext|>", "<end_of_turn>", "<|eot|>", "</s>",
};

// Zero if the key is absent.
Result<std::int64_t> split_key(const GgufFile& gguf, std::string_view key) {
  const GgufValue* value = gguf.find(key);
  if (value == nullptr) return std::int64_t{0};
  return value->as_int();
}

// "-00002-of-00003.gguf" for part 1 of 3.
std::string part_suffix(std::int64_t part, std::int64_t count) {
  char text[64];
  std::snprintf(text, sizeof text, "-%05lld-of-%05lld.gguf", static_cast<long long>(part + 1), static_cast<long long>(count));
  return text;
}

Status check_part(const GgufFile& part, std::int64_t number, std::int64_t count) {
  LINNET_ASSIGN(const std::int64_t says_count, split_key(part, "split.count"));
  LINNET_ASSIGN(const std::int64_t says_number, split_key(part, "split.no"));
  if (says_count == count && says_number == number) return {};
  return part.error(ErrorCode::kCorrupt, "says that it is part " + std::to_string(says_number) + " of " +
                                             std::to_string(says_count) + " (from 0); part " + std::to_string(number) + " of " +
                                             std::to_string(count) + " is wanted here");
}

// Tensors in several parts, and as many as the first part says.
Status check_tensor_count(const std::vector<GgufFile>& parts) {
  std::set<std::string_view> names;
  std::int64_t tensors = 0;
  for (const GgufFile& part : parts) {
    for (const GgufTensor& tensor : part.tensors()) {
      ++tensors;
      if (names.insert(tensor.name).second) continue;
      return part.error(ErrorCode::kCorrupt, "tensor " + quote(tensor.name) + " is in an earlier part too");
    }
  }
  LINNET_ASSIGN(const std::int64_t wanted, split_key(parts[0], "split.tensors.count"));
  if (wanted == 0 || wanted == tensors) return {};
  return parts[0].error(ErrorCode::kCorrupt, "key 'split.tensors.count' is " + std::to_string(wanted) + "; the parts have " +
                                                 std::to_string(tensors) + " tensors");
}

// A tensor that nothing reads would be left out of the arithmetic without a word.
Status add_tensors(const GgufFile& gguf, const TensorPlaces& places, ModelParts& parts) {
  for (const GgufTensor& tensor : gguf.tensors()) {
    if (is_gguf_config_tensor(tensor.name)) continue;
    const std::optional<std::string> name = hugging_face_tensor_name(tensor.name);
    if (!name || places.find(*name) == nullptr) {
      return gguf.error(ErrorCode::kUnsupported, "tensor " + quote(tensor.name) + " " + places.no_place());
    }
    LINNET_ASSIGN(const Tensor matrix, gguf.matrix(tensor));
    parts.tensors.push_back({*name, matrix});
  }
  return {};
}

std::vector<TokenId> end_tokens(const GgufVocabulary& vocabulary) {
  std::vector<TokenId> ends;
  for (const std::optional<TokenId>& id : {vocabulary.eos, vocabulary.eot, vocabulary.eom}) {
    if (id) ends.push_back(*id);
  }
  if (vocabulary.types) {
    std::int32_t id = 0;
    for (const std::string_view token : vocabulary.tokens) {
      const bool control = (*vocabulary.types)[static_cast<std::size_t>(id)] == kControlToken;
      if (control && std::find(kEndNames.begin(), kEndNames.end(), token) != kEndNames.end())
        ends.push_back(static_cast<TokenId>(id));
      ++id;
    }
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

// A recommendation outside of what sampling takes is an error: used or dropped silently, it would change answers.
Result<std::optional<float>> recommended(const GgufFile& gguf, std::string_view key, double min, double max) {
  const GgufValue* value = gguf.find(key);
  if (value == nullptr) return std::optional<float>();
  LINNET_ASSIGN(const double number, value->as_float());
  if (!(number >= min && number <= max)) {
    return value->error(ErrorCode::kCorrupt, "is " + std::to_string(number) + "; " + std::to_string(min) + " to " +
                                                 std::to_string(max) + " are allowed");
  }
  return std::optional<float>(static_cast<float>(number));
}

Result<SamplingOverrides> recommended_sampling(const GgufFile& gguf) {
  SamplingOverrides sampling;
  LINNET_ASSIGN(sampling.temperature, recommended(gguf, "general.sampling.temp", 0, 100));
  LINNET_ASSIGN(sampling.top_p, recommended(gguf, "general.sampling.top_p", 1e-6, 1));
  LINNET_ASSIGN(sampling.min_p, recommended(gguf, "general.sampling.min_p", 0, 1 - 1e-6));
  if (const GgufValue* value = gguf.find("general.sampling.top_k")) {
    LINNET_ASSIGN(const std::int64_t top_k, value->as_int());
    // Files say "off" with 0 or less.
    sampling.top_k = static_cast<std::int32_t>(std::clamp<std::int64_t>(top_k, 0, ConfigLimits::kVocabularyMax));
  }
  return sampling;
}

// A string, or nothing; empty if the key is absent.
Result<std::string_view> optional_string(const GgufFile& gguf, std::string_view key) {
  const GgufValue* value = gguf.find(key);
  if (value == nullptr) return std::string_view();
  return value->as_string();
}

}  // namespace

Result<std::vector<GgufFile>> open_gguf_files(const std::string& path) {
  std::vector<GgufFile> parts;
  LINNET_ASSIGN(GgufFile first, GgufFile::open(path));
  parts.push_back(std::move(first));
  LINNET_ASSIGN(const std::int64_t count, split_key(parts[0], "split.count"));
  if (count < 0 || count > kPartsMax) {
    return parts[0].error(ErrorCode::kCorrupt, "key 'split.count' is " + std::to_string(count) + "; at most " +
                                                   std::to_string(kPartsMax) + " parts are allowed");
  }
  if (count <= 1) return parts;
  const std::string suffix = part_suffix(0, count);
  if (!path.ends_with(suffix)) {
    return parts[0].error(
        ErrorCode::kUnsupported,
        "is one of " + std::to_string(count) + " files of a model; give the first of them, whose name ends with " + suffix);
  }
  LINNET_RETURN_IF_ERROR(check_part(parts[0], 0, count));
  const std::string stem = path.substr(0, path.size() - suffix.size());
  for (std::int64_t i = 1; i < count; ++i) {
    LINNET_ASSIGN(GgufFile part, GgufFile::open(stem + part_suffix(i, count)));
    LINNET_RETURN_IF_ERROR(check_part(part, i, count));
    parts.push_back(std::move(part));
  }
  LINNET_RETURN_IF_ERROR(check_tensor_count(parts));
  return parts;
}

Result<ModelParts> read_gguf_model(const std::string& path) {
  LINNET_ASSIGN(std::vector<GgufFile> files, open_gguf_files(path));
  return read_gguf_model(std::move(files));
}

Result<ModelParts> read_gguf_model(std::vector<GgufFile> files) {
  ModelParts parts{.path = files.at(0).path(), .gguf = std::move(files)};
  const GgufFile& gguf = parts.gguf[0];
  LINNET_ASSIGN(parts.config, read_gguf_config(parts.gguf));
  const TensorPlaces places(parts.config);
  for (const GgufFile& part : parts.gguf) LINNET_RETURN_IF_ERROR(add_tensors(part, places, parts));
  LINNET_RETURN_IF_ERROR(places.check(parts));
  LINNET_ASSIGN(parts.generation.sampling, recommended_sampling(gguf));
  if (gguf.find("tokenizer.ggml.tokens") != nullptr) {
    LINNET_ASSIGN(const GgufVocabulary vocabulary, read_gguf_vocabulary(gguf));
    parts.generation.end_tokens = end_tokens(vocabulary);
  }
  LINNET_ASSIGN(const std::string_view chat_template, optional_string(gguf, "tokenizer.chat_template"));
  parts.chat_template = chat_template;
  LINNET_ASSIGN(const std::string_view name, optional_string(gguf, "general.name"));
  parts.name = name.empty() ? std::filesystem::path(parts.path).stem().string() : std::string(name);
  return parts;
}

}  // namespace linnet
