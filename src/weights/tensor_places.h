// The tensors that a model of a configuration has: what files are held against, so that nothing is missing and nothing left over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "linnet/status.h"
#include "model/config.h"
#include "weights/model_file.h"

namespace linnet {

struct TensorPlace {
  std::string name;  // Hugging Face's
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool bias = false;  // of a linear layer

  bool operator==(const TensorPlace&) const = default;
};

class TensorPlaces {
 public:
  explicit TensorPlaces(const ModelConfig& config);

  // Null: no such place.
  const TensorPlace* find(std::string_view name) const;
  // "has no place in a model of architecture llama with 2 layers".
  std::string no_place() const;
  // Whether `parts` fill every place, with the right shapes; a GGUF file gives biases to those layers that have them. Error
  // (kCorrupt): the first that is missing or misshapen.
  Status check(const ModelParts& parts) const;

 private:
  std::string no_place_;
  std::vector<TensorPlace> places_;  // by name
};

}  // namespace linnet
