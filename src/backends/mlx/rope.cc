#include "backends/mlx/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace linnet::mlx_backend {
namespace {

// Arithmetic on one device: plain numbers become float32.
class Arithmetic {
 public:
  explicit Arithmetic(mx::Device device) : device_(device) {}

  static mx::array number(double value) { return mx::array(static_cast<float>(value)); }
  mx::array add(const mx::array& a, const mx::array& b) const { return mx::add(a, b, device_); }
  mx::array subtract(const mx::array& a, const mx::array& b) const { return mx::subtract(a, b, device_); }
  mx::array multiply(const mx::array& a, const mx::array& b) const { return mx::multiply(a, b, device_); }
  mx::array divide(const mx::array& a, const mx::array& b) const { return mx::divide(a, b, device_); }

  // theta^(2i / dims)
  mx::array wavelengths(double theta, std::int32_t dims) const {
    const mx::array exponents = divide(mx::arange(0, dims, 2, mx::float32, device_), number(dims));
    return mx::power(number(theta), exponents, device_);
  }

 private:
  mx::Device device_;
};

mx::array llama3_wavelengths(const RopeConfig& rope, std::int32_t dims, mx::Device device) {
  const Arithmetic on(device);
  const double context = rope.original_context;
  const double low = rope.low_freq_factor;
  const double high = rope.high_freq_factor;
  const mx::array plain = on.wavelengths(rope.theta, dims);
  const mx::array turns = on.multiply(on.number(2 * std::numbers::pi), plain);
  const mx::array longest = on.number(context / low);
  const mx::array stretched =
      mx::where(mx::greater(turns, longest, device), on.multiply(plain, on.number(rope.factor)), plain, device);
  const mx::array medium =
      mx::logical_and(mx::greater(turns, on.number(context / high), device), mx::less(turns, longest, device), device);
  const mx::array smooth = on.divide(on.subtract(on.divide(on.number(context), turns), on.number(low)), on.number(high - low));
  const mx::array share = on.add(on.divide(on.subtract(on.number(1), smooth), on.number(rope.factor)), smooth);
  return mx::where(medium, on.divide(stretched, share), stretched, device);
}

// Where wavelengths begin and end to be blended, as indices of pairs.
struct YarnRange {
  double low;
  double high;
};
YarnRange yarn_range(const RopeConfig& rope, std::int32_t dims) {
  const auto pair_of = [&](double turns) {
    return dims * std::log(rope.original_context / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(static_cast<double>(rope.theta)));
  };
  const double low = std::max(std::floor(pair_of(rope.beta_fast)), 0.0);
  const double high = std::min(std::ceil(pair_of(rope.beta_slow)), static_cast<double>(dims - 1));
  return {low, low == high ? high + 0.001 : high};
}

mx::array yarn_wavelengths(const RopeConfig& rope, std::int32_t dims, mx::Device device) {
  const Arithmetic on(device);
  const YarnRange range = yarn_range(rope, dims);
  const mx::array plain = on.wavelengths(rope.theta, dims);
  const mx::array stretched = on.multiply(on.number(rope.factor), plain);
  const mx::array ramp = mx::clip(
      on.divide(on.subtract(mx::arange(dims / 2, mx::float32, device), on.number(range.low)), on.number(range.high - range.low)),
      on.number(0), on.number(1), device);
  const mx::array share = on.subtract(on.number(1), ramp);
  const mx::array rest = on.subtract(on.number(1), share);
  return on.divide(on.multiply(stretched, plain), on.add(on.multiply(stretched, share), on.multiply(plain, rest)));
}

double yarn_scale(double factor, double mscale) { return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; }

mx::array scaled_wavelengths(const std::vector<float>& factors, const RopeConfig& rope, std::int32_t dims, mx::Device device) {
  const Arithmetic on(device);
  const mx::array scale(factors.begin(), {static_cast<mx::ShapeElem>(factors.size())}, mx::float32);
  return on.multiply(scale, on.wavelengths(rope.theta, dims));
}

double longrope_scale(const ModelConfig& config) {
  const double factor = static_cast<double>(config.context_max) / config.rope.original_context;
  return factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(config.rope.original_context)));
}

}  // namespace

Rope::Rope(const ModelConfig& config, mx::Device device)
    : device_(device), dims_(config.rope.dims == 0 ? config.head_dim : config.rope.dims), interleaved_(config.rope.interleaved) {
  const RopeConfig& rope = config.rope;
  switch (rope.kind) {
    case RopeKind::kDefault:
    case RopeKind::kLinear:
      if (rope.kind == RopeKind::kLinear) position_scale_ = static_cast<float>(1.0 / rope.factor);
      if (rope.frequency_divisors.empty()) {
        theta_ = rope.theta;
      } else {
        wavelengths_ = scaled_wavelengths(rope.frequency_divisors, rope, dims_, device);
      }
      break;
    case RopeKind::kLlama3:
      wavelengths_ = llama3_wavelengths(rope, dims_, device);
      break;
    case RopeKind::kYarn:
      wavelengths_ = yarn_wavelengths(rope, dims_, device);
      input_scale_ = yarn_scale(rope.factor, rope.mscale) / yarn_scale(rope.factor, rope.mscale_all_dim);
      break;
    case RopeKind::kLongRope:
      // Long factors for every length, as mlx-lm has it: positions that were cached stay what they are.
      wavelengths_ = scaled_wavelengths(rope.long_factor, rope, dims_, device);
      input_scale_ = longrope_scale(config);
      interleaved_ = false;
      break;
  }
  if (wavelengths_) wavelengths_->eval();
}

mx::array Rope::rotate(const mx::array& x, std::int32_t offset) const {
  return mx::fast::rope(input_scale_ == 1.0 ? x : scaled(x), dims_, interleaved_, theta_, position_scale_, offset, wavelengths_,
                        device_);
}

// x, its first dims_ values of each head multiplied by input_scale_.
mx::array Rope::scaled(const mx::array& x) const {
  const mx::array scale(static_cast<float>(input_scale_), x.dtype());
  if (dims_ == x.shape(3)) return mx::multiply(x, scale, device_);
  mx::Shape stop = x.shape();
  stop[3] = dims_;
  const mx::array turning = mx::slice(x, {0, 0, 0, 0}, stop, device_);
  return mx::slice_update(x, mx::multiply(turning, scale, device_), {0, 0, 0, 0}, stop, device_);
}

}  // namespace linnet::mlx_backend
