#include "hub/hub_name.h"

#include <algorithm>
#include <optional>

namespace linnet {
namespace {

constexpr std::size_t kPartBytesMax = 96;  // of an organisation's or repository's name, as on the hub

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// "--" is what the cache's folder names put between organisation and repository.
bool is_repository_part(std::string_view part) {
  const auto allowed = [](char c) { return is_word(c) || c == '-' || c == '.'; };
  return !part.empty() && part.size() <= kPartBytesMax && std::all_of(part.begin(), part.end(), allowed) &&
         is_word(part.front()) && is_word(part.back()) && part.find("--") == part.npos && part.find("..") == part.npos;
}

// Cuts `text` at the first `mark`; what follows the mark, or nothing if there is none.
std::optional<std::string_view> cut(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == text.npos) return std::nullopt;
  const std::string_view rest = text.substr(at + 1);
  text = text.substr(0, at);
  return rest;
}

}  // namespace

bool is_path_below(std::string_view path) {
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return std::none_of(path.begin(), path.end(),
                      [](char c) { return c == '\\' || static_cast<unsigned char>(c) < 32 || c == 127; });
}

Result<HubName> parse_hub_name(std::string_view text) {
  const Error error{
      ErrorCode::kInvalidArgument,
      "\"" + std::string(text) +
          "\" is not org/name, org/name:QUANTIZATION or org/name/file.gguf, each perhaps with @REVISION, for instance "
          "HuggingFaceTB/SmolLM2-135M-Instruct@main",
      "MODEL"};
  HubName name;
  if (const auto revision = cut(text, '@')) {
    if (!is_path_below(*revision)) return error;
    name.revision = *revision;
  }
  if (const auto quantization = cut(text, ':')) {
    const auto allowed = [](char c) { return is_word(c) || c == '-' || c == '.'; };
    if (quantization->empty() || !std::all_of(quantization->begin(), quantization->end(), allowed)) return error;
    name.quantization = *quantization;
  }
  std::string_view rest = text;
  const std::string_view organisation = rest.substr(0, rest.find('/'));
  auto repository = cut(rest, '/');
  if (!repository) return error;
  const auto file = cut(*repository, '/');
  if (!is_repository_part(organisation) || !is_repository_part(*repository)) return error;
  name.repository = std::string(organisation) + "/" + std::string(*repository);
  if (file) {
    if (!name.quantization.empty() || !is_path_below(*file) || !file->ends_with(".gguf")) return error;
    name.file = *file;
  }
  return name;
}

}  // namespace linnet
