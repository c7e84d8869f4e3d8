#include "api/models.h"

#include "api/json_text.h"

namespace linnet::api {

std::string encode_model(const ModelCard& card) {
  return "{\"id\":" + json_string(card.id) + ",\"object\":\"model\",\"created\":" + std::to_string(card.created) +
         ",\"owned_by\":\"linnet\"" + (card.context > 0 ? ",\"context_length\":" + std::to_string(card.context) : "") + "}";
}

std::string encode_model_list(std::span<const ModelCard* const> cards) {
  std::string list = "{\"object\":\"list\",\"data\":[";
  for (const ModelCard* card : cards) {
    if (list.back() == '}') list += ',';
    list += encode_model(*card);
  }
  return list += "]}";
}

}  // namespace linnet::api
