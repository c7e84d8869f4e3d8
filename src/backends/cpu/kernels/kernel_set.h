// The kernels of one instruction set, as a table. Chosen once, at start; every kernel call names the table it goes through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "backends/cpu/kernels/activations.h"
#include "backends/cpu/kernels/attention_kernel.h"
#include "backends/cpu/kernels/elementwise.h"
#include "backends/cpu/kernels/kv_write.h"
#include "backends/cpu/kernels/linear.h"
#include "backends/cpu/kernels/panels.h"
#include "backends/cpu/kernels/probe_kernels.h"
#include "linnet/status.h"

namespace linnet::cpu {

// What to do before a row is rounded: nothing, or rms_norm.
struct RoundTask {
  RowsIn x;
  const float* weight = nullptr;  // null: no norm
  float eps = 0;
};

// All entries are set. The wrappers in panels.h, activations.h, linear.h and elementwise.h check arguments; these trust them.
struct KernelSet {
  std::string_view name;  // amx, avx512, avx2, portable: LINNET_ISA's value, and part of numerics_id
  bool tiles = false;     // blocks of rounded rows are made for tiles

  void (*repack)(const Tensor& source, const PanelMatrix& into, PanelPlace place, PanelRange range);
  void (*round_rows)(const RoundTask& task, const Activations& out, int row_begin, int row_end);
  void (*linear_quantized)(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share);
  void (*linear_dense)(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share);
  void (*rms_norm)(const RmsNormTask& task, int row_begin, int row_end);
  void (*swiglu)(const float* gate, const float* up, float* out, std::int64_t count);
  void (*exponential)(const float* x, float* out, std::int64_t count);
  void (*rope)(const RopeTask& task, int row_begin, int row_end);
  void (*add)(const float* x, float* y, std::int64_t count);
  AttentionKernel (*attention)(std::int32_t head_dim);
  KvWrite kv_write;
  ProbeKernels (*probe)();
};

// The sets that this machine runs, best first; the last one is portable. The first call asks the system for tiles, once for the
// process.
std::span<const KernelSet* const> runnable_kernel_sets();

// `wanted`: LINNET_ISA's value; empty: the best. Error kInvalidArgument names the value and the sets that this machine runs.
Result<const KernelSet*> choose_kernel_set(std::string_view wanted);
// choose_kernel_set of the environment's LINNET_ISA.
Result<const KernelSet*> kernel_set_of_environment();

}  // namespace linnet::cpu
