// What mlx-lm computed, as tools/make_parity_goldens.py wrote it down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "linnet/ids.h"

namespace linnet {

std::string golden_path(const std::string& name);
std::vector<std::string> golden_lines(const std::string& name);
std::vector<std::string> split(const std::string& text, char separator);
std::vector<std::int32_t> numbers(const std::string& text);  // "1,2,3"

// A tiny model: its folder, what was fed, and the logits of every token that was.
struct GoldenCase {
  std::string name;
  std::vector<std::int32_t> chunks;
  std::vector<TokenId> prompt;
  std::vector<TokenId> decoded;
  std::vector<float> prefill;  // [prompt, vocabulary]
  std::vector<float> decode;   // [decoded, vocabulary]
  std::vector<float> chunked;  // [prompt, vocabulary]

  friend void PrintTo(const GoldenCase& golden, std::ostream* out) { *out << golden.name; }
};
std::vector<GoldenCase> golden_cases();

// The demo model: checksums.
struct GoldenDemo {
  std::vector<TokenId> prompt;
  std::vector<TokenId> decoded;
  std::map<std::string, std::uint32_t> arrays;  // by module: codes, scales and biases, or numbers
  std::vector<std::uint32_t> logits;            // of the prompt's last token and of the decoded ones
};
GoldenDemo golden_demo();

// The one of zlib.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t seed = 0);

// What may stand behind a difference that is no fault of the code: where the goldens were made, and where this runs.
std::string provenance();

}  // namespace linnet
