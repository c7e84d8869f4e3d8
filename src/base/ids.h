// Identifiers that only the inside of the engine knows; the public ones come along.
#pragma once

#include <cstddef>
#include <cstdint>

#include "linnet/ids.h"

namespace linnet {

enum class BlockId : std::uint32_t {};     // a KV block of the pool
enum class SequenceId : std::uint64_t {};  // one token history with KV

constexpr std::size_t index_of(BlockId block) { return static_cast<std::size_t>(block); }

}  // namespace linnet
