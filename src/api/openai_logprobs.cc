#include "api/openai_logprobs.h"

#include <algorithm>

#include "api/json_text.h"

namespace linnet::api {
namespace {

void append_separator(std::string& out, bool& first) {
  if (!first) out += ',';
  first = false;
}

void append_token(std::string& out, const TextLogprob& token) {
  out += "{\"token\":";
  out += json_string(token.text);
  out += ",\"logprob\":";
  append_json_number(out, token.logprob);
  out += ",\"bytes\":[";
  bool first = true;
  for (const char byte : token.bytes) {
    append_separator(out, first);
    append_json_integer(out, static_cast<unsigned char>(byte));
  }
  out += ']';
}

std::size_t characters_of(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

// [each(0), each(1), ...]
template <class Each>
void append_array(std::string& out, std::span<const TextLogprobs> entries, const Each& each) {
  out += '[';
  bool first = true;
  for (const TextLogprobs& entry : entries) {
    append_separator(out, first);
    each(entry);
  }
  out += ']';
}

// Two tokens may have one text: the more likely one stands.
void append_candidates(std::string& out, std::span<const TextLogprob> top) {
  out += '{';
  bool first = true;
  for (std::size_t i = 0; i < top.size(); ++i) {
    const auto same_text = [&](const TextLogprob& other) { return other.text == top[i].text; };
    if (std::any_of(top.begin(), top.begin() + static_cast<std::ptrdiff_t>(i), same_text)) continue;
    append_separator(out, first);
    out += json_string(top[i].text) + ":";
    append_json_number(out, top[i].logprob);
  }
  out += '}';
}

}  // namespace

void append_chat_logprobs(std::string& out, std::span<const TextLogprobs> logprobs, std::size_t& /*offset*/) {
  out += "{\"content\":";
  append_array(out, logprobs, [&out](const TextLogprobs& entry) {
    append_token(out, entry.token);
    out += ",\"top_logprobs\":[";
    bool first = true;
    for (const TextLogprob& candidate : entry.top) {
      append_separator(out, first);
      append_token(out, candidate);
      out += '}';
    }
    out += "]}";
  });
  out += ",\"refusal\":null}";
}

void append_completion_logprobs(std::string& out, std::span<const TextLogprobs> logprobs, std::size_t& offset) {
  out += "{\"tokens\":";
  append_array(out, logprobs, [&out](const TextLogprobs& entry) { out += json_string(entry.token.text); });
  out += ",\"token_logprobs\":";
  append_array(out, logprobs, [&out](const TextLogprobs& entry) { append_json_number(out, entry.token.logprob); });
  out += ",\"top_logprobs\":";
  const auto has_candidates = [](const TextLogprobs& entry) { return !entry.top.empty(); };
  if (std::any_of(logprobs.begin(), logprobs.end(), has_candidates)) {
    append_array(out, logprobs, [&out](const TextLogprobs& entry) { append_candidates(out, entry.top); });
  } else {
    out += "null";
  }
  out += ",\"text_offset\":";
  append_array(out, logprobs, [&](const TextLogprobs& entry) {
    append_json_integer(out, static_cast<std::int64_t>(offset));
    offset += characters_of(entry.token.text);
  });
  out += '}';
}

}  // namespace linnet::api
