// What both OpenAI text protocols do with a body before and after their prompt.
#pragma once

#include <string_view>

#include "api/object_reader.h"
#include "api/parsed_request.h"
#include "linnet/status.h"

namespace linnet::api {

// The body as a JSON object.
Result<Json> read_body(std::string_view body);

// Sampling fields and field rules. Before the prompt, so that a field with a wrong value is named even if the prompt is wrong
// too.
Status read_common_fields(ObjectReader& reader, ParsedRequest& parsed);

// For protocols whose replies hold one answer.
Status refuse_choices(const ParsedRequest& parsed);

// What is left unknown in `reader` joins `parsed.ignored`; an error if there is any and `options` are strict.
Status settle_unknown_fields(const ObjectReader& reader, const ParseOptions& options, ParsedRequest& parsed);

}  // namespace linnet::api
