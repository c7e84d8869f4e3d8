// Reads a file's bytes from front to back; no read passes their end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace linnet {

class GgufCursor {
 public:
  explicit GgufCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }

  // False, and nothing read, if fewer bytes than that are left.
  template <class T>
  [[nodiscard]] bool read(T& value) {
    std::span<const std::byte> bytes;
    if (!take(sizeof(T), bytes)) return false;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return true;
  }
  [[nodiscard]] bool take(std::uint64_t count, std::span<const std::byte>& bytes) {
    if (count > remaining()) return false;
    bytes = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += bytes.size();
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace linnet
