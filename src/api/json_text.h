// JSON written by hand where a document would be waste.
#pragma once

#include <string>
#include <string_view>

namespace linnet::api {

// Appends `utf8` as the inside of a JSON string (no quotes): escapes the quote, the backslash and control characters, nothing
// else.
void append_json_text(std::string& out, std::string_view utf8);

// With quotes.
std::string json_string(std::string_view utf8);

}  // namespace linnet::api
