// Weights from a model file into panels: what a model file's bind() asks for.
#pragma once

#include <cstdint>
#include <initializer_list>
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

  void run(Pool& pool);

 private:
  struct Repack {
    Tensor source;
    PanelMatrix into;
    PanelPlace place;
    PanelRange range;
  };

  Result<PanelMatrix> matrix(const std::string& name, std::int64_t rows, std::int64_t cols);
  Result<Ops::Linears> pair(const Tensor& gate, const Tensor& up, PanelFormat format);
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
