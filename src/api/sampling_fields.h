// The fields that both OpenAI text protocols have: model, stream, limits, sampling, grammars, n, stop.
#pragma once

#include "api/object_reader.h"
#include "api/parsed_request.h"
#include "linnet/status.h"

namespace linnet::api {

inline constexpr std::size_t kStopStringsMax = 256;
inline constexpr std::size_t kStopBytesMax = 16 * 1024;  // all of them together

// Reads them into `parsed`, whose prompt is left alone. Unknown fields inside stream_options are added to `parsed.ignored`.
Status read_sampling_fields(ObjectReader& reader, ParsedRequest& parsed);

// A string or an array of strings, added to `stop`. `path`: what errors call it.
Status read_stop_strings(const Json& value, const std::string& path, std::vector<std::string>& stop);
// logprobs is true or false, top_logprobs a number.
Status read_chat_logprobs(ObjectReader& reader, SamplingOverrides& sampling);
// logprobs is a number; chat's way is understood too.
Status read_completion_logprobs(ObjectReader& reader, SamplingOverrides& sampling);

}  // namespace linnet::api
