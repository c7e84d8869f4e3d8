// Logprobs of an answer's tokens in the two shapes that OpenAI's protocols have for them.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "linnet/text_engine.h"

namespace linnet::api {

// {"content":[{"token","logprob","bytes","top_logprobs":[...]}],"refusal":null}. As AppendLogprobs.
void append_chat_logprobs(std::string& out, std::span<const TextLogprobs> logprobs, std::size_t& offset);

// {"tokens":[...],"token_logprobs":[...],"top_logprobs":[{token: logprob}],"text_offset":[...]}; top_logprobs is null if no
// candidates were asked for. `offset`: characters of the answer's tokens before these; moves on.
void append_completion_logprobs(std::string& out, std::span<const TextLogprobs> logprobs, std::size_t& offset);

}  // namespace linnet::api
