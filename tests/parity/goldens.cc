#include "goldens.h"

#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "backends/mlx/version.h"
#include "base/check.h"

namespace linnet {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK_MSG(file.good(), path + " cannot be read");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<TokenId> token_ids(const std::string& text) {
  std::vector<TokenId> ids;
  for (const std::int32_t number : numbers(text)) ids.push_back(static_cast<TokenId>(number));
  return ids;
}

// `count` rows of `all`'s `total` ones, from `first` on.
std::vector<float> rows_of(const std::vector<float>& all, std::size_t total, std::size_t first, std::size_t count) {
  const std::size_t width = all.size() / total;
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(count * width)};
}

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0xEDB88320U : 0U);
    table[i] = value;
  }
  return table;
}

}  // namespace

std::string golden_path(const std::string& name) { return LINNET_SOURCE_DIR "/tests/parity/goldens/" + name; }

std::vector<std::string> golden_lines(const std::string& name) {
  std::vector<std::string> lines = split(read_file(golden_path(name)), '\n');
  std::erase(lines, "");
  return lines;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::vector<std::int32_t> numbers(const std::string& text) {
  std::vector<std::int32_t> all;
  for (const std::string& part : split(text, ',')) all.push_back(std::stoi(part));
  return all;
}

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  for (const std::string& line : golden_lines("cases.txt")) {
    const std::vector<std::string> parts = split(line, ' ');
    GoldenCase one{
        .name = parts.at(0), .chunks = numbers(parts.at(1)), .prompt = token_ids(parts.at(2)), .decoded = token_ids(parts.at(3))};
    const std::string bytes = read_file(golden_path(one.name + "/logits.f32"));
    std::vector<float> all(bytes.size() / sizeof(float));
    std::memcpy(all.data(), bytes.data(), bytes.size());
    const std::size_t prompt = one.prompt.size();
    const std::size_t total = 2 * prompt + one.decoded.size();
    one.prefill = rows_of(all, total, 0, prompt);
    one.decode = rows_of(all, total, prompt, one.decoded.size());
    one.chunked = rows_of(all, total, prompt + one.decoded.size(), prompt);
    cases.push_back(std::move(one));
  }
  return cases;
}

GoldenDemo golden_demo() {
  GoldenDemo demo;
  const auto checksum = [](const std::string& text) { return static_cast<std::uint32_t>(std::stoul(text, nullptr, 16)); };
  for (const std::string& line : golden_lines("smollm2.txt")) {
    const std::vector<std::string> parts = split(line, ' ');
    if (parts[0] == "prompt") demo.prompt = token_ids(parts.at(1));
    if (parts[0] == "decoded") demo.decoded = token_ids(parts.at(1));
    if (parts[0] == "array") demo.arrays[parts.at(1)] = checksum(parts.at(2));
    if (parts[0] == "logits") demo.logits.push_back(checksum(parts.at(1)));
  }
  return demo;
}

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t seed) {
  static constexpr std::array<std::uint32_t, 256> kTable = crc_table();
  std::uint32_t value = ~seed;
  for (const std::byte byte : bytes) value = (value >> 8U) ^ kTable[(value ^ static_cast<std::uint32_t>(byte)) & 0xFFU];
  return ~value;
}

std::string provenance() {
  utsname machine{};
  uname(&machine);
  return "goldens: " + golden_lines("made_on.txt").at(0) + "; here: mlx " + mlx_backend::loaded_version() + ", " +
         machine.machine + ", glibc " + gnu_get_libc_version() +
         ". Where these differ, libm's or MLX's own last bits may: run tools/make_parity_goldens.py here and compare again.";
}

}  // namespace linnet
