// The fields by which a request says what its answer must look like.
#pragma once

#include "api/object_reader.h"
#include "linnet/status.h"
#include "linnet/text_engine.h"

namespace linnet::api {

// Of several the first counts: grammar and guided_grammar (Lark), response_format, json_schema and guided_json,
// structured_outputs
// ({"json", "regex", "choice", "grammar"}), guided_regex, guided_choice. Whether a grammar can be enforced is said by whoever
// compiles it.
Status read_grammar_fields(ObjectReader& reader, TextRequest& request);

}  // namespace linnet::api
