// What every file of this folder defines, for libFuzzer or for replay.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// Returns 0. Any bytes may come; nothing may crash, hang, or take memory out of proportion to `size`.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// Reads both ends, so that a sanitizer sees a view that leaves its file.
inline void touch(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const volatile std::byte* data = bytes.data();
  (void)data[0];
  (void)data[bytes.size() - 1];
}
