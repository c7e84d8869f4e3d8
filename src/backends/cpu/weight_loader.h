// Weights from a model file into panels: what a model file's bind() asks for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/kernels/kernel_set.h"
#include "backends/cpu/ops.h"
#include "backends/cpu/pool.h"
#include "backends/cpu/region.h"
#include "linnet/status.h"
#include "weights/model_file.h"

namespace linnet::cpu {

// Used twice: over no memory it only counts what a model needs; over that much memory it lays matrices out and notes what to
// repack, which run() does on all threads.
class WeightLoader {
 public:
  struct Named {
    std::string name;  // without ".weight"
    std::int64_t rows = 0;
  };

  // `file` outlives the loader. `memory`: null to count.
  WeightLoader(const ModelFile& file, const KernelSet& kernels, std::byte* memory)
      : file_(&file), kernels_(&kernels), carver_(memory), counting_(memory == nullptr) {}

  Result<Ops::Norm> norm(const std::string& name, std::int64_t size);
  // A linear layer is name + ".weight" and, where the file has it, name + ".bias".
  Result<Ops::Linear> linear(const std::string& name, std::int64_t rows, std::int64_t cols);
  // Two matrices of one format and size become pairs of panels (gate and up).
  Result<Ops::Linears> linears(std::initializer_list<Named> matrices, std::int64_t cols);
  Result<Ops::Embedding> embedding(const std::string& name, std::int64_t rows, std::int64_t cols);
  Result<Ops::Linear> head(const std::string& name, std::int64_t rows, std::int64_t cols);
  Result<Ops::Linear> tied_head(const Ops::Embedding& embedding) {
    bytes_per_token_ += static_cast<double>(embedding.bytes());
    return embedding;
  }

  std::size_t bytes() const;
  // Bytes of the matrices that a lone decode row reads, and the weights of the layers' matrices (all but the head).
  double bytes_per_token() const { return bytes_per_token_; }
  double layer_weights() const { return layer_weights_; }

  // In many turns of the pool.
  void run(Pool& pool);

 private:
  struct Repack {
    Tensor source;
    PanelMatrix into;
    PanelPlace place;
    PanelRange range;
  };

  struct Placed {
    Named layer;
    PanelPlace place;
  };

  Result<PanelMatrix> matrix(const std::string& name, std::int64_t rows, std::int64_t cols);
  Result<PanelMatrix> layer(const std::string& name, std::int64_t rows, std::int64_t cols);
  // Empty: their formats differ.
  Result<std::optional<PanelMatrix>> pair(const Named& gate, const Named& up, std::int64_t cols);
  // The biases of the layers that a matrix joins; those that the file has not are zero.
  Status add_biases(std::initializer_list<Placed> layers, PanelMatrix& matrix);
  void take(PanelMatrix& matrix);
  void note(const Tensor& source, const PanelMatrix& into, PanelPlace place);

  const ModelFile* file_;
  const KernelSet* kernels_;
  Carver carver_;
  bool counting_;
  std::vector<Repack> repacks_;
  double bytes_per_token_ = 0;
  double layer_weights_ = 0;
};

}  // namespace linnet::cpu
