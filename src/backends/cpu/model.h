// The architectures that the CPU backend runs: one line each.
#pragma once

#include <memory>

#include "backends/cpu/ops.h"
#include "backends/cpu/weight_loader.h"
#include "linnet/status.h"
#include "model/config.h"

namespace linnet::cpu {

// A model file bound to the CPU's words. Immutable.
class Model {
 public:
  virtual ~Model() = default;
  virtual Ops::Tensor forward(Ops& ops) const = 0;  // logits [S, vocabulary] of the step that `ops` holds
};

// Errors: kUnsupported, naming the architecture and the known ones; those of the file's tensors.
Result<std::unique_ptr<Model>> bind_model(const ModelConfig& config, WeightLoader& weights);

}  // namespace linnet::cpu
