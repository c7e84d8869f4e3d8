// The architectures that Linnet runs: one line each, for every backend.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "linnet/status.h"
#include "model/config.h"
#include "model/llama.h"
#include "model/ops.h"

namespace linnet {

// A model file bound to a backend's words. Immutable.
template <class Ops>
class Model {
 public:
  virtual ~Model() = default;
  virtual typename Ops::Tensor forward(Ops& ops) const = 0;  // logits [S, vocabulary] of the step that `ops` holds
};

template <ModelOps Ops, template <ModelOps> class Architecture>
class BoundModel final : public Model<Ops> {
 public:
  explicit BoundModel(Architecture<Ops> model) : model_(std::move(model)) {}
  typename Ops::Tensor forward(Ops& ops) const override { return model_.forward(ops); }

  template <class Weights>
  static Result<std::unique_ptr<Model<Ops>>> bind(const ModelConfig& config, Weights& weights) {
    LINNET_ASSIGN(Architecture<Ops> model, Architecture<Ops>::bind(config, weights));
    return std::unique_ptr<Model<Ops>>(std::make_unique<BoundModel>(std::move(model)));
  }

 private:
  Architecture<Ops> model_;
};

// `weights`: the backend's loader. Errors: kUnsupported, naming the architecture and the known ones; those of the file's tensors.
template <class Ops, class Weights>
Result<std::unique_ptr<Model<Ops>>> bind_model(const ModelConfig& config, Weights& weights) {
  struct Entry {
    std::string_view name;
    Result<std::unique_ptr<Model<Ops>>> (*bind)(const ModelConfig&, Weights&);
  };
  constexpr std::array kArchitectures = {
      Entry{"llama", &BoundModel<Ops, Llama>::template bind<Weights>},
  };
  std::string known;
  for (const Entry& entry : kArchitectures) {
    if (entry.name == config.architecture) return entry.bind(config, weights);
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return Error{ErrorCode::kUnsupported, "architecture \"" + config.architecture + "\" is not supported; known: " + known,
               "architecture"};
}

}  // namespace linnet
