// Every matrix of a real K-quant file becomes panels, in each kernel set: rows come back as the format's definition has them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "backends/cpu/kernels/kernel_set.h"
#include "backends/cpu/region.h"
#include "hub/local_models.h"
#include "weights/dequantize.h"
#include "weights/gguf.h"

namespace linnet {
namespace {

void check_rows(const cpu::KernelSet& kernels, const Tensor& tensor, std::string_view name) {
  const Result<cpu::PanelFormat> format = cpu::panel_format(tensor);
  ASSERT_TRUE(format.ok()) << name << ": " << format.error().message;
  Result<cpu::PanelMatrix> matrix = cpu::panel_matrix(*format, tensor.rows, tensor.cols);
  ASSERT_TRUE(matrix.ok()) << name << ": " << matrix.error().message;
  Result<cpu::Region> memory = cpu::Region::reserve(matrix->bytes(), "panels");
  ASSERT_TRUE(memory.ok());
  matrix->data = memory->data();
  cpu::repack(kernels, tensor, *matrix, {}, {0, cpu::panels_of(tensor.rows)});
  std::vector<float> expected(static_cast<std::size_t>(tensor.cols)), row(expected.size());
  const std::int64_t step = tensor.rows / 37 + 1;
  for (std::int64_t r = 0; r < tensor.rows; r += step) {
    dequantize_row(tensor.dtype, tensor.row(r), tensor.cols, expected.data());
    cpu::dequantize_row(*matrix, static_cast<int>(r), row.data());
    ASSERT_EQ(std::memcmp(expected.data(), row.data(), row.size() * sizeof(float)), 0)
        << kernels.name << ", " << name << " row " << r;
  }
}

TEST(GemmaPanels, EveryMatrixComesBack) {
  const char* const given = std::getenv("LINNET_DEMO_GEMMA");
  const Result<std::string> path = given != nullptr ? std::string(given) : resolve_model("demo-gemma");
  ASSERT_TRUE(path.ok()) << "fetch the model with `linnet get demo-gemma`";
  const Result<GgufFile> file = GgufFile::open(*path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  std::set<DType> types;
  for (const GgufTensor& named : file->tensors()) {
    const Result<Tensor> tensor = file->matrix(named);
    ASSERT_TRUE(tensor.ok()) << tensor.error().message;
    if (tensor->rows == 1) continue;  // norms
    types.insert(tensor->dtype);
    for (const cpu::KernelSet* const kernels : cpu::runnable_kernel_sets()) check_rows(*kernels, *tensor, named.name);
  }
  EXPECT_TRUE(types.contains(DType::kQ4_K) || types.contains(DType::kQ6_K));
}

}  // namespace
}  // namespace linnet
