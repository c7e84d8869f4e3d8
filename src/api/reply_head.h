// What every part of one reply repeats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace linnet::api {

struct ReplyHead {
  std::string id;            // "chatcmpl-...", "cmpl-..."
  std::int64_t created = 0;  // seconds since 1970
  std::string model;         // the real id, whatever name the client used
};

// `{"id":...,"object":...,"created":...,"model":...,"choices":[`: how each OpenAI reply and chunk begins.
std::string encode_head(const ReplyHead& head, std::string_view object);

}  // namespace linnet::api
