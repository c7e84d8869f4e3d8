#include "backends/cpu/model.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "model/llama.h"

namespace linnet::cpu {
namespace {

template <template <class> class Architecture>
class Bound final : public Model {
 public:
  explicit Bound(Architecture<Ops> model) : model_(std::move(model)) {}
  Ops::Tensor forward(Ops& ops) const override { return model_.forward(ops); }

  static Result<std::unique_ptr<Model>> bind(const ModelConfig& config, WeightLoader& weights) {
    LINNET_ASSIGN(Architecture<Ops> model, Architecture<Ops>::bind(config, weights));
    return std::unique_ptr<Model>(std::make_unique<Bound>(std::move(model)));
  }

 private:
  Architecture<Ops> model_;
};

struct Entry {
  std::string_view name;
  Result<std::unique_ptr<Model>> (*bind)(const ModelConfig&, WeightLoader&);
};
constexpr std::array kRegistry = {
    Entry{"llama", &Bound<Llama>::bind},
};

}  // namespace

Result<std::unique_ptr<Model>> bind_model(const ModelConfig& config, WeightLoader& weights) {
  std::string known;
  for (const Entry& entry : kRegistry) {
    if (entry.name == config.architecture) return entry.bind(config, weights);
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return Error{ErrorCode::kUnsupported, "architecture \"" + config.architecture + "\" is not supported; known: " + known,
               "architecture"};
}

}  // namespace linnet::cpu
