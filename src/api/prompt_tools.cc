#include "api/prompt_tools.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "api/json_text.h"
#include "api/object_reader.h"
#include "api/openai_chat.h"
#include "api/request_body.h"

namespace linnet::api {
namespace {

// Tokens are counted as a prompt's: the special ones that the tokenizer adds included.
Status refuse_other_tokens(ObjectReader& reader) {
  for (const char* name : {"add_special", "parse_special"}) {
    LINNET_ASSIGN(const auto wanted, reader.boolean(name));
    if (wanted.value_or(true)) continue;
    return Error{ErrorCode::kUnsupported, std::string(name) + " false is not offered: tokens are those that a prompt has", name};
  }
  LINNET_ASSIGN(const auto pieces, reader.boolean("with_pieces"));
  if (!pieces.value_or(false)) return {};
  return Error{ErrorCode::kUnsupported, "with_pieces is not offered: ask /detokenize", "with_pieces"};
}

}  // namespace

Result<ParsedRequest> parse_tokenize(std::string_view body, const ParseOptions& options) {
  LINNET_ASSIGN(const Json json, read_body(body));
  if (json.contains("messages")) return parse_chat(body, options);
  ObjectReader reader(json, {});
  ParsedRequest parsed;
  LINNET_ASSIGN(const auto model, reader.string("model"));
  parsed.model = model.value_or("");
  LINNET_RETURN_IF_ERROR(refuse_other_tokens(reader));
  LINNET_ASSIGN(std::optional<std::string> content, reader.string("content"));
  LINNET_ASSIGN(std::optional<std::string> prompt, reader.string("prompt"));
  if (!content) content = std::move(prompt);
  if (!content) return missing_value("content", "a string, unless there are messages");
  parsed.request.prompt = *std::move(content);
  LINNET_RETURN_IF_ERROR(settle_unknown_fields(reader, options, parsed));
  return parsed;
}

Result<ParsedRequest> parse_detokenize(std::string_view body, const ParseOptions& options) {
  LINNET_ASSIGN(const Json json, read_body(body));
  ObjectReader reader(json, {});
  ParsedRequest parsed;
  LINNET_ASSIGN(const auto model, reader.string("model"));
  parsed.model = model.value_or("");
  const Json* ids = reader.find("tokens");
  if (ids == nullptr) return missing_value("tokens", "an array of token ids");
  if (!ids->is_array()) return wrong_value("tokens", "an array of token ids", *ids);
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < ids->size(); ++i) {
    const Json& id = (*ids)[i];
    const bool fits = id.is_number_unsigned() && id.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max();
    if (!fits) return wrong_value(indexed("tokens", i), "a token id", id);
    tokens.push_back(static_cast<TokenId>(id.get<std::int32_t>()));
  }
  parsed.request.prompt = std::move(tokens);
  LINNET_RETURN_IF_ERROR(settle_unknown_fields(reader, options, parsed));
  return parsed;
}

std::string encode_tokens(std::span<const TokenId> tokens) {
  std::string reply = "{\"tokens\":[";
  for (const TokenId token : tokens) {
    if (reply.back() != '[') reply += ',';
    reply += std::to_string(static_cast<std::int32_t>(token));
  }
  return reply + "],\"count\":" + std::to_string(tokens.size()) + "}";
}

std::string encode_detokenized(std::string_view text) { return "{\"content\":" + json_string(text) + "}"; }

std::string encode_rendered(std::string_view text) { return "{\"prompt\":" + json_string(text) + "}"; }

}  // namespace linnet::api
