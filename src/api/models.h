// GET /v1/models and /v1/models/{id}.
#pragma once

#include <span>
#include <string>

#include "linnet/text_engine.h"

namespace linnet::api {

// Without context_length if the card has none: a model that was not loaded yet.
std::string encode_model(const ModelCard& card);
std::string encode_model_list(std::span<const ModelCard* const> cards);

}  // namespace linnet::api
