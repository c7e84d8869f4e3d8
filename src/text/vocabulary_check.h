// Whether the parts of a Vocabulary fit together.
#pragma once

#include <cstddef>

#include "linnet/status.h"
#include "text/vocabulary.h"

namespace linnet {

inline constexpr std::size_t kVocabularyTokensMax = std::size_t{1} << 22;
inline constexpr std::size_t kVocabularyMergesMax = std::size_t{1} << 24;
inline constexpr std::size_t kTokenBytesMax = 4096;  // deriving merges takes time quadratic in this

// Errors: kCorrupt or kTooLarge, naming the GGUF field, the value and the limit.
Status check_vocabulary(const Vocabulary& vocabulary);

}  // namespace linnet
