// Strong identifiers. Convert at the edges with `static_cast`; they never mix by accident.
#pragma once

#include <cstddef>
#include <cstdint>

namespace linnet {

enum class TokenId : std::int32_t {};     // index into a model's vocabulary
enum class RequestId : std::uint64_t {};  // one submitted request, unique within an engine

constexpr std::size_t index_of(TokenId token) { return static_cast<std::size_t>(token); }

}  // namespace linnet
