// The kernels in plain C++: what every machine runs, and the specification of the others.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/kernel_set.h"

namespace linnet::cpu {

void repack_portable(const Tensor& source, const PanelMatrix& into, PanelPlace place, PanelRange range);
void round_rows_portable(const RoundTask& task, const Activations& out, int row_begin, int row_end);
void linear_quantized_portable(const PanelMatrix& weights, const Activations& x, const LinearOutput& out,
                               const LinearShare& share);
void linear_dense_portable(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share);
void rms_norm_portable(const RmsNormTask& task, int row_begin, int row_end);
void swiglu_portable(const float* gate, const float* up, float* out, std::int64_t count);
void exponential_portable(const float* x, float* out, std::int64_t count);
void rope_portable(const RopeTask& task, int row_begin, int row_end);
void add_portable(const float* x, float* y, std::int64_t count);

// gate * sigmoid(gate) * up, as swiglu and Epilogue::kSwiglu have it.
float silu_product_portable(float gate, float up);

inline constexpr KernelSet kPortableKernels{
    .name = "portable",
    .tiles = false,
    .repack = repack_portable,
    .round_rows = round_rows_portable,
    .linear_quantized = linear_quantized_portable,
    .linear_dense = linear_dense_portable,
    .rms_norm = rms_norm_portable,
    .swiglu = swiglu_portable,
    .exponential = exponential_portable,
    .rope = rope_portable,
    .add = add_portable,
    .attention = attention_kernel_portable,
    .kv_write = kv_write_portable,
    .probe = probe_kernels_portable,
};

}  // namespace linnet::cpu
