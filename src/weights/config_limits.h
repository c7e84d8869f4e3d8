// What a model may look like, whatever file describes it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace linnet {

// Anything else is refused, naming key, value and limit.
struct ConfigLimits {
  static constexpr std::int64_t kLayersMax = 10'000;
  static constexpr std::int64_t kHiddenMax = 1 << 20;
  static constexpr std::int64_t kIntermediateMax = 1 << 22;
  static constexpr std::int64_t kHeadsMax = 4'096;
  static constexpr std::int64_t kHeadDimMax = 1'024;
  static constexpr std::int64_t kVocabularyMax = 1 << 20;  // what a sampler can add up
  static constexpr std::int64_t kContextMax = 1 << 24;
};

// Names that files give to the architectures of ModelConfig::architecture.
struct ArchitectureName {
  std::string_view in_file;
  std::string_view architecture;
};
inline constexpr std::array kGgufArchitectures = {ArchitectureName{"llama", "llama"}};
inline constexpr std::array kFolderArchitectures = {ArchitectureName{"llama", "llama"}, ArchitectureName{"mistral", "llama"}};

// The names for a message: "llama, mistral".
template <class Names>
std::string architecture_names(const Names& names) {
  std::string text;
  for (const ArchitectureName& name : names) text += (text.empty() ? "" : ", ") + std::string(name.in_file);
  return text;
}

}  // namespace linnet
