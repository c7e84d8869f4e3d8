#include "weights/folder_rope.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weights/config_limits.h"
#include "weights/quote.h"
#include "weights/rope_check.h"

namespace linnet {
namespace {

struct KindName {
  std::string_view name;
  RopeKind kind;
};
constexpr std::array kKinds = {
    KindName{"default", RopeKind::kDefault}, KindName{"linear", RopeKind::kLinear},     KindName{"llama3", RopeKind::kLlama3},
    KindName{"yarn", RopeKind::kYarn},       KindName{"longrope", RopeKind::kLongRope}, KindName{"su", RopeKind::kLongRope},
};

class RopeReader {
 public:
  RopeReader(const ConfigJson& json, const ModelConfig& config)
      : json_(json), config_(config), scaling_(json.within(Json::object())) {}

  Result<RopeConfig> read() {
    LINNET_RETURN_IF_ERROR(find_scaling());
    LINNET_ASSIGN(const std::optional<bool> interleaved, json_.flag("rope_traditional"));
    rope_.interleaved = interleaved.value_or(false);
    LINNET_RETURN_IF_ERROR(number("rope_theta", rope_.theta));
    LINNET_RETURN_IF_ERROR(kind());
    LINNET_RETURN_IF_ERROR(refuse());
    LINNET_RETURN_IF_ERROR(fields());
    if (const std::optional<std::string> problem = rope_problem(rope_, config_.head_dim)) {
      return json_.error(ErrorCode::kCorrupt, *problem);
    }
    return std::move(rope_);
  }

 private:
  // The one of the two objects that is there; the newer name wins where both are, as they say the same then.
  Status find_scaling() {
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const Json* found = json_.find(key);
      if (found == nullptr) continue;
      if (!found->is_object()) return json_.value_error(ErrorCode::kCorrupt, key, *found, "an object is wanted");
      scaling_ = json_.within(*found);
      scaling_key_ = key;
    }
    return {};
  }

  // What the scaling object says counts before what stands beside it.
  const ConfigJson& holder(std::string_view key) const { return scaling_.find(key) != nullptr ? scaling_ : json_; }

  Result<std::optional<double>> optional_number(std::string_view key) const { return holder(key).number(key); }

  // Leaves `into` as it is if the key is nowhere.
  Status number(std::string_view key, float& into) const {
    LINNET_ASSIGN(const std::optional<double> value, optional_number(key));
    if (value) into = static_cast<float>(*value);
    return {};
  }

  Status required(std::string_view key, float& into) const {
    LINNET_ASSIGN(const std::optional<double> value, scaling_.number(key));
    if (!value) return json_.error(ErrorCode::kCorrupt, "key " + quote(scaling_key_ + "." + std::string(key)) + " is missing");
    into = static_cast<float>(*value);
    return {};
  }

  Status kind() {
    LINNET_ASSIGN(const std::optional<std::string> old_name, scaling_.string("type"));
    LINNET_ASSIGN(const std::optional<std::string> new_name, scaling_.string("rope_type"));
    if (old_name && new_name && *old_name != *new_name) {
      return json_.error(ErrorCode::kCorrupt, "key " + quote(scaling_key_) + " has the type " + quote(*old_name) +
                                                  " and the rope_type " + quote(*new_name) + "; they must be equal");
    }
    const std::string name = old_name ? *old_name : new_name.value_or("default");
    std::string known;
    for (const KindName& candidate : kKinds) {
      if (candidate.name == name) {
        rope_.kind = candidate.kind;
        return {};
      }
      known += (known.empty() ? "" : ", ") + std::string(candidate.name);
    }
    return json_.error(ErrorCode::kUnsupported,
                       "key " + quote(scaling_key_) + " has the rope kind " + quote(name) + "; known are: " + known);
  }

  // Keys that change the arithmetic in ways that are not followed.
  Status refuse() const {
    LINNET_ASSIGN(const std::optional<double> partial, optional_number("partial_rotary_factor"));
    if (partial && *partial != 1) return unsupported("partial_rotary_factor", "only 1 is supported");
    for (const char* key : {"attention_factor", "short_mscale", "long_mscale"}) {
      if (scaling_.find(key) != nullptr) return unsupported(key, "only its absence is supported");
    }
    LINNET_ASSIGN(const std::optional<bool> truncate, scaling_.flag("truncate"));
    if (truncate && !*truncate) return unsupported("truncate", "only true is supported");
    for (const char* key : {"full_attention", "sliding_attention"}) {
      if (scaling_.find(key) != nullptr) return unsupported(key, "positions that differ between layers are not supported");
    }
    return {};
  }

  Error unsupported(std::string_view key, std::string_view what) const {
    const ConfigJson& place = holder(key);
    return place.value_error(ErrorCode::kUnsupported, key, *place.find(key), what);
  }

  Status original_context() {
    constexpr std::string_view kKey = "original_max_position_embeddings";
    LINNET_ASSIGN(const std::int64_t tokens, holder(kKey).require_int(kKey, 1, ConfigLimits::kContextMax));
    rope_.original_context = static_cast<std::int32_t>(tokens);
    return {};
  }

  Status fields() {
    if (rope_.kind == RopeKind::kDefault) return {};
    if (rope_.kind == RopeKind::kLinear) return required("factor", rope_.factor);
    LINNET_RETURN_IF_ERROR(original_context());
    if (rope_.kind == RopeKind::kLongRope) return longrope();
    LINNET_RETURN_IF_ERROR(required("factor", rope_.factor));
    if (rope_.kind == RopeKind::kLlama3) {
      LINNET_RETURN_IF_ERROR(number("low_freq_factor", rope_.low_freq_factor));
      return number("high_freq_factor", rope_.high_freq_factor);
    }
    LINNET_RETURN_IF_ERROR(number("beta_fast", rope_.beta_fast));
    LINNET_RETURN_IF_ERROR(number("beta_slow", rope_.beta_slow));
    LINNET_RETURN_IF_ERROR(number("mscale", rope_.mscale));
    return number("mscale_all_dim", rope_.mscale_all_dim);
  }

  Status longrope() {
    rope_.factor = static_cast<float>(config_.context_max) / static_cast<float>(rope_.original_context);
    LINNET_RETURN_IF_ERROR(list("short_factor", rope_.short_factor));
    return list("long_factor", rope_.long_factor);
  }

  Status list(std::string_view key, std::vector<float>& into) const {
    const Json* values = scaling_.find(key);
    if (values == nullptr)
      return json_.error(ErrorCode::kCorrupt, "key " + quote(scaling_key_ + "." + std::string(key)) + " is missing");
    if (!values->is_array()) return scaling_.value_error(ErrorCode::kCorrupt, key, *values, "a list of numbers is wanted");
    for (const Json& value : *values) {
      if (!value.is_number()) return scaling_.value_error(ErrorCode::kCorrupt, key, value, "a list of numbers is wanted");
      into.push_back(value.get<float>());
    }
    return {};
  }

  const ConfigJson& json_;
  const ModelConfig& config_;
  ConfigJson scaling_;
  std::string scaling_key_ = "rope_scaling";
  RopeConfig rope_;
};

}  // namespace

Result<RopeConfig> read_folder_rope(const ConfigJson& json, const ModelConfig& config) { return RopeReader(json, config).read(); }

}  // namespace linnet
