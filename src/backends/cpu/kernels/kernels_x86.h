// The kernels of the x86 files, one file per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/kernel_set.h"

namespace linnet::cpu {

// AVX2, FMA, F16C, BMI2.
void repack_avx2(const Tensor& source, const PanelMatrix& into, PanelPlace place, PanelRange range);
void round_rows_avx2(const RoundTask& task, const Activations& out, int row_begin, int row_end);
void linear_quantized_avx2(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share);
void linear_dense_avx2(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share);
void swiglu_avx2(const float* gate, const float* up, float* out, std::int64_t count);
void exponential_avx2(const float* x, float* out, std::int64_t count);
void rope_avx2(const RopeTask& task, int row_begin, int row_end);
void add_avx2(const float* x, float* y, std::int64_t count);

// AVX-512 F, BW, DQ, VL, VNNI, and all of the above.
void repack_avx512(const Tensor& source, const PanelMatrix& into, PanelPlace place, PanelRange range);
void round_rows_avx512(const RoundTask& task, const Activations& out, int row_begin, int row_end);
void linear_quantized_avx512(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share);
void linear_dense_avx512(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share);
void rms_norm_avx512(const RmsNormTask& task, int row_begin, int row_end);
void swiglu_avx512(const float* gate, const float* up, float* out, std::int64_t count);
void exponential_avx512(const float* x, float* out, std::int64_t count);
void rope_avx512(const RopeTask& task, int row_begin, int row_end);
void add_avx512(const float* x, float* y, std::int64_t count);

// And AMX-INT8: at least kTileRowsMin rows; linear_quantized_amx takes any number.
void linear_tiles_amx(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share);
void linear_quantized_amx(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share);

}  // namespace linnet::cpu
