// The fields that say how much a model thinks, and where its thoughts go.
#pragma once

#include <string>

#include "api/object_reader.h"
#include "api/parsed_request.h"
#include "linnet/status.h"

namespace linnet::api {

// reasoning_effort, max_reasoning_tokens (thinking_token_budget, thinking_budget), reasoning_format, into `parsed`.
Status read_reasoning_fields(ObjectReader& reader, ParsedRequest& parsed);

// An effort in the field `name`, into `wish`.
Status read_effort(ObjectReader& reader, const char* name, ReasoningWish& wish);

// Sets the template's switches for what `parsed` wishes. Errors: kUnsupported, naming the field, for a wish that this model
// cannot be held to.
Status apply_reasoning(const ModelCard& model, ParsedRequest& parsed);

// Adds the variables of `args`, a JSON object or nothing, that the request has not set. After apply_reasoning().
Status apply_template_defaults(const std::string& args, ParsedRequest& parsed);

}  // namespace linnet::api
