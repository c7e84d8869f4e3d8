// JSON written by hand where a document would be waste.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace linnet::api {

// Appends `utf8` as the inside of a JSON string (no quotes): escapes the quote, the backslash and control characters, nothing
// else.
void append_json_text(std::string& out, std::string_view utf8);

void append_json_integer(std::string& out, std::int64_t value);
// The shortest text that reads back as `value`; JSON has no infinities: they become ±9999.
void append_json_number(std::string& out, float value);

// With quotes.
std::string json_string(std::string_view utf8);

}  // namespace linnet::api
