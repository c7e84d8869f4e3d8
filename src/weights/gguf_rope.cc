#include "weights/gguf_rope.h"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "weights/config_limits.h"
#include "weights/dequantize.h"
#include "weights/quote.h"
#include "weights/rope_check.h"

namespace linnet {
namespace {

class RopeReader {
 public:
  RopeReader(std::span<const GgufFile> files, const std::string& prefix, const ModelConfig& config)
      : files_(files), prefix_(prefix + "rope."), config_(config) {}

  Result<RopeConfig> read() {
    // Files of this architecture have the rows of q and k reordered, so that pairs lie side by side.
    rope_.interleaved = true;
    LINNET_RETURN_IF_ERROR(number("freq_base", rope_.theta));
    LINNET_RETURN_IF_ERROR(kind());
    LINNET_RETURN_IF_ERROR(factor());
    if (rope_.kind == RopeKind::kYarn) LINNET_RETURN_IF_ERROR(yarn());
    if (rope_.kind == RopeKind::kLongRope) LINNET_RETURN_IF_ERROR(longrope());
    LINNET_RETURN_IF_ERROR(divisors("rope_freqs.weight", rope_.frequency_divisors));
    if (const std::optional<std::string> problem = rope_problem(rope_, config_.head_dim)) {
      return files_[0].error(ErrorCode::kCorrupt, *problem + " (keys " + quote(prefix_ + "...") + ")");
    }
    return std::move(rope_);
  }

 private:
  const GgufValue* find(std::string_view name) const { return files_[0].find(prefix_ + std::string(name)); }

  // Leaves `into` as it is if the key is absent.
  Status number(std::string_view name, float& into) const {
    const GgufValue* value = find(name);
    if (value == nullptr) return {};
    LINNET_ASSIGN(const double read, value->as_float());
    into = static_cast<float>(read);
    return {};
  }

  // A key that the kind's usual arithmetic has as `value`; anything else is not followed.
  Status must_be(std::string_view name, float value, float tolerance) const {
    float found = value;
    LINNET_RETURN_IF_ERROR(number(name, found));
    if (std::abs(found - value) <= tolerance) return {};
    return find(name)->error(ErrorCode::kUnsupported, "is " + number_text(static_cast<double>(found)) + "; only " +
                                                          number_text(static_cast<double>(value)) + " is supported");
  }

  Status kind() {
    std::string_view name = find("scale_linear") != nullptr ? "linear" : "none";
    const GgufValue* type = find("scaling.type");
    if (type != nullptr) {
      LINNET_ASSIGN(name, type->as_string());
    }
    if (name == "none") return {};
    if (name == "linear") rope_.kind = RopeKind::kLinear;
    if (name == "yarn") rope_.kind = RopeKind::kYarn;
    if (name == "longrope") rope_.kind = RopeKind::kLongRope;
    if (rope_.kind != RopeKind::kDefault) return {};
    return type->error(ErrorCode::kUnsupported, "is " + quote(name) + "; supported are none, linear, yarn and longrope");
  }

  Status factor() {
    if (rope_.kind == RopeKind::kDefault) return {};
    if (rope_.kind != RopeKind::kLinear) LINNET_RETURN_IF_ERROR(original_context());
    if (rope_.kind == RopeKind::kLongRope) {
      // Not in the files: how far the context was stretched.
      rope_.factor = static_cast<float>(config_.context_max) / static_cast<float>(rope_.original_context);
      return {};
    }
    const std::string_view name =
        find("scaling.factor") != nullptr || rope_.kind == RopeKind::kYarn || find("scale_linear") == nullptr ? "scaling.factor"
                                                                                                              : "scale_linear";
    LINNET_RETURN_IF_ERROR(files_[0].require(prefix_ + std::string(name)));
    return number(name, rope_.factor);
  }

  Status original_context() {
    LINNET_ASSIGN(const GgufValue* value, files_[0].require(prefix_ + "scaling.original_context_length"));
    LINNET_ASSIGN(const std::int64_t tokens, value->as_int());
    if (tokens < 1 || tokens > ConfigLimits::kContextMax) {
      return value->error(ErrorCode::kCorrupt, "is " + std::to_string(tokens) + "; 1 to " +
                                                   std::to_string(ConfigLimits::kContextMax) + " are allowed");
    }
    rope_.original_context = static_cast<std::int32_t>(tokens);
    return {};
  }

  Status yarn() {
    LINNET_RETURN_IF_ERROR(number("scaling.yarn_beta_fast", rope_.beta_fast));
    LINNET_RETURN_IF_ERROR(number("scaling.yarn_beta_slow", rope_.beta_slow));
    LINNET_RETURN_IF_ERROR(must_be("scaling.yarn_ext_factor", 1, 0));
    LINNET_RETURN_IF_ERROR(must_be("scaling.yarn_attn_factor", 1, 0));
    LINNET_RETURN_IF_ERROR(must_be("scaling.yarn_log_multiplier", 0, 0));
    return must_be("scaling.attn_factor", 1, 0);
  }

  Status longrope() {
    LINNET_RETURN_IF_ERROR(divisors("rope_factors_short.weight", rope_.short_factor));
    LINNET_RETURN_IF_ERROR(divisors("rope_factors_long.weight", rope_.long_factor));
    const double original = rope_.original_context;
    const double usual = rope_.factor <= 1 ? 1 : std::sqrt(1 + std::log(static_cast<double>(rope_.factor)) / std::log(original));
    return must_be("scaling.attn_factor", static_cast<float>(usual), 1e-3F);
  }

  // Leaves `into` as it is if there is no such tensor.
  Status divisors(std::string_view name, std::vector<float>& into) const {
    for (const GgufFile& file : files_) {
      const GgufTensor* tensor = file.find_tensor(name);
      if (tensor == nullptr) continue;
      LINNET_ASSIGN(const Tensor vector, file.matrix(*tensor));
      if (vector.rows != 1 || vector.cols != config_.head_dim / 2) {
        return file.error(ErrorCode::kCorrupt, "tensor " + quote(name) + " is " + shape_text(vector.rows, vector.cols) + "; " +
                                                   shape_text(1, config_.head_dim / 2) + " is wanted");
      }
      into.resize(static_cast<std::size_t>(vector.cols));
      dequantize_row(vector.dtype, vector.data.data(), vector.cols, into.data());
    }
    return {};
  }

  std::span<const GgufFile> files_;
  std::string prefix_;
  const ModelConfig& config_;
  RopeConfig rope_;
};

}  // namespace

Result<RopeConfig> read_gguf_rope(std::span<const GgufFile> files, const std::string& prefix, const ModelConfig& config) {
  return RopeReader(files, prefix, config).read();
}

}  // namespace linnet
