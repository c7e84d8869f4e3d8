#include "api/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "api/grammar_fields.h"

namespace linnet::api {
namespace {

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kChoicesMax = 128;
constexpr std::int64_t kInt32Min = std::numeric_limits<std::int32_t>::min();

template <class To, class From>
std::optional<To> converted(const std::optional<From>& value) {
  if (!value) return std::nullopt;
  return static_cast<To>(*value);
}

// Any 64-bit integer, signed or not, is a seed of its own; 0 is one like the others.
Result<std::optional<std::uint64_t>> read_seed(ObjectReader& reader) {
  const Json* value = reader.find("seed");
  if (value == nullptr) return std::optional<std::uint64_t>();
  if (value->is_number_unsigned()) return std::optional(value->get<std::uint64_t>());
  LINNET_ASSIGN(const std::optional<std::int64_t> seed, reader.integer("seed", {}));
  return converted<std::uint64_t>(seed);
}

Status read_sampling(ObjectReader& reader, SamplingOverrides& sampling) {
  LINNET_ASSIGN(const auto temperature, reader.number("temperature", {.min = 0, .max = 100}));
  LINNET_ASSIGN(const auto top_p, reader.number("top_p", {.min = 0, .max = 1, .min_allowed = false}));
  LINNET_ASSIGN(const auto min_p, reader.number("min_p", {.min = 0, .max = 1, .max_allowed = false}));
  LINNET_ASSIGN(auto top_k, reader.integer("top_k", {.min = -1, .max = kInt32Max}));
  LINNET_ASSIGN(sampling.seed, read_seed(reader));
  sampling.temperature = converted<float>(temperature);
  sampling.top_p = converted<float>(top_p);
  sampling.min_p = converted<float>(min_p);
  // A double just inside the open end of a range may round onto it.
  if (sampling.top_p == 0.0F) sampling.top_p = std::numeric_limits<float>::min();
  if (sampling.min_p == 1.0F) sampling.min_p = std::nextafter(1.0F, 0.0F);
  if (top_k == -1) top_k = 0;  // other servers' way to say off
  sampling.top_k = converted<std::int32_t>(top_k);
  return {};
}

// As mlx_lm.server and vLLM name them; 0 turns the repetition penalty off, as 1 does.
Status read_penalties(ObjectReader& reader, SamplingOverrides& sampling) {
  constexpr NumberRange kPenalty{.min = -100, .max = 100};
  LINNET_ASSIGN(auto repetition, reader.number("repetition_penalty", {.min = 0, .max = 100}));
  LINNET_ASSIGN(const auto repeat, reader.number("repeat_penalty", {.min = 0, .max = 100}));
  if (!repetition) repetition = repeat;
  if (repetition == 0.0) repetition = 1.0;
  if (repetition && *repetition < 0.01) {
    return Error{ErrorCode::kInvalidArgument, "repetition_penalty must be 0 (off) or from 0.01 to 100", "repetition_penalty"};
  }
  LINNET_ASSIGN(const auto presence, reader.number("presence_penalty", kPenalty));
  LINNET_ASSIGN(const auto frequency, reader.number("frequency_penalty", kPenalty));
  LINNET_ASSIGN(const auto repetition_context, reader.integer("repetition_context_size", {.min = 0, .max = kInt32Max}));
  LINNET_ASSIGN(const auto presence_context, reader.integer("presence_context_size", {.min = 0, .max = kInt32Max}));
  LINNET_ASSIGN(const auto frequency_context, reader.integer("frequency_context_size", {.min = 0, .max = kInt32Max}));
  sampling.repetition_penalty = converted<float>(repetition);
  sampling.presence_penalty = converted<float>(presence);
  sampling.frequency_penalty = converted<float>(frequency);
  sampling.repetition_context = converted<std::int32_t>(repetition_context);
  sampling.presence_context = converted<std::int32_t>(presence_context);
  sampling.frequency_context = converted<std::int32_t>(frequency_context);
  return {};
}

Status read_xtc(ObjectReader& reader, SamplingOverrides& sampling) {
  LINNET_ASSIGN(const auto probability, reader.number("xtc_probability", {.min = 0, .max = 1}));
  LINNET_ASSIGN(const auto threshold, reader.number("xtc_threshold", {.min = 0, .max = 0.5}));
  sampling.xtc_probability = converted<float>(probability);
  sampling.xtc_threshold = converted<float>(threshold);
  return {};
}

Status read_logit_bias(ObjectReader& reader, std::vector<LogitBias>& biases) {
  constexpr double kBiasMax = 100;
  const Json* value = reader.find("logit_bias");
  if (value == nullptr) return {};
  if (!value->is_object()) return wrong_value("logit_bias", "an object from token ids to numbers", *value);
  for (const auto& [name, bias] : value->items()) {
    const std::string path = "logit_bias." + std::string(name);
    std::int32_t id = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc() || end != name.data() + name.size() || id < 0) {
      return Error{ErrorCode::kInvalidArgument,
                   "logit_bias must be an object from token ids to numbers; " + describe(Json(name)) + " is no token id",
                   "logit_bias"};
    }
    if (!bias.is_number() || std::abs(bias.get<double>()) > kBiasMax) return wrong_value(path, "a number from -100 to 100", bias);
    biases.push_back({.token = TokenId{id}, .bias = bias.get<float>()});
  }
  return {};
}

Status read_max_tokens(ObjectReader& reader, TextRequest& request) {
  LINNET_ASSIGN(const auto older, reader.integer("max_tokens", {.min = 0, .max = kInt32Max}));
  LINNET_ASSIGN(const auto newer, reader.integer("max_completion_tokens", {.min = 0, .max = kInt32Max}));
  request.max_tokens = converted<std::int32_t>(newer ? newer : older);
  return {};
}

Status read_stream(ObjectReader& reader, ParsedRequest& parsed) {
  LINNET_ASSIGN(const auto stream, reader.boolean("stream"));
  parsed.stream = stream.value_or(false);
  const Json* options = reader.find("stream_options");
  if (options == nullptr) return {};
  if (!options->is_object()) return wrong_value("stream_options", "an object", *options);
  ObjectReader inner(*options, "stream_options");
  LINNET_ASSIGN(const auto include_usage, inner.boolean("include_usage"));
  inner.accept("include_obfuscation");
  parsed.include_usage = include_usage.value_or(false);
  for (std::string& path : inner.unknown()) parsed.ignored.push_back(std::move(path));
  return {};
}

}  // namespace

Status read_stop_strings(const Json& value, const std::string& path, std::vector<std::string>& stop) {
  if (value.is_string()) {
    stop.push_back(value.get<std::string>());
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (!value[i].is_string()) return wrong_value(indexed(path, i), "a string", value[i]);
      stop.push_back(value[i].get<std::string>());
    }
  } else {
    return wrong_value(path, "a string or an array of strings", value);
  }
  std::size_t bytes = 0;
  for (const std::string& text : stop) bytes += text.size();
  if (stop.size() <= kStopStringsMax && bytes <= kStopBytesMax) return {};
  return Error{ErrorCode::kInvalidArgument,
               path + " has " + std::to_string(stop.size()) + " strings of " + std::to_string(bytes) + " bytes; at most " +
                   std::to_string(kStopStringsMax) + " of " + std::to_string(kStopBytesMax) + " bytes together are taken",
               path};
}

Status read_chat_logprobs(ObjectReader& reader, SamplingOverrides& sampling) {
  LINNET_ASSIGN(const auto wanted, reader.boolean("logprobs"));
  LINNET_ASSIGN(const auto asked, reader.integer("top_logprobs", {.min = -1, .max = kTopLogprobsMax}));
  const std::int64_t top = std::max<std::int64_t>(asked.value_or(0), 0);  // -1: mlx_lm.server's way to say nothing
  if (wanted.value_or(false)) {
    sampling.logprobs = static_cast<std::int32_t>(top);
  } else if (top > 0) {
    return Error{ErrorCode::kInvalidArgument, "top_logprobs needs logprobs: send logprobs: true", "top_logprobs"};
  }
  return {};
}

Status read_completion_logprobs(ObjectReader& reader, SamplingOverrides& sampling) {
  const Json* value = reader.find("logprobs");
  if (value == nullptr || value->is_boolean()) return read_chat_logprobs(reader, sampling);
  LINNET_ASSIGN(const auto top, reader.integer("logprobs", {.min = 0, .max = kTopLogprobsMax}));
  sampling.logprobs = converted<std::int32_t>(top);
  return {};
}

Status read_sampling_fields(ObjectReader& reader, ParsedRequest& parsed) {
  LINNET_ASSIGN(const auto model, reader.string("model"));
  parsed.model = model.value_or("");
  LINNET_RETURN_IF_ERROR(read_stream(reader, parsed));
  LINNET_RETURN_IF_ERROR(read_sampling(reader, parsed.request.sampling));
  LINNET_RETURN_IF_ERROR(read_penalties(reader, parsed.request.sampling));
  LINNET_RETURN_IF_ERROR(read_xtc(reader, parsed.request.sampling));
  LINNET_RETURN_IF_ERROR(read_logit_bias(reader, parsed.request.logit_bias));
  LINNET_RETURN_IF_ERROR(read_grammar_fields(reader, parsed.request));
  LINNET_RETURN_IF_ERROR(read_max_tokens(reader, parsed.request));
  if (const Json* stop = reader.find("stop")) LINNET_RETURN_IF_ERROR(read_stop_strings(*stop, "stop", parsed.request.stop));
  LINNET_ASSIGN(const auto min_tokens, reader.integer("min_tokens", {.min = 0, .max = kInt32Max}));
  parsed.request.sampling.min_tokens = converted<std::int32_t>(min_tokens);
  LINNET_ASSIGN(const auto choices, reader.integer("n", {.min = 1, .max = kChoicesMax}));
  parsed.request.choices = static_cast<std::int32_t>(choices.value_or(1));
  LINNET_ASSIGN(const auto timeout_ms, reader.integer("timeout_ms", {.min = 1, .max = kInt32Max}));
  if (timeout_ms) parsed.request.time_limit = std::chrono::milliseconds(*timeout_ms);
  LINNET_ASSIGN(const auto ignore_eos, reader.boolean("ignore_eos"));
  parsed.request.ignore_eos = ignore_eos.value_or(false);
  LINNET_ASSIGN(const auto priority, reader.integer("priority", {.min = kInt32Min, .max = kInt32Max}));
  parsed.request.priority = static_cast<std::int32_t>(priority.value_or(0));
  return {};
}

}  // namespace linnet::api
