#include "api/reply_ids.h"

namespace linnet::api {
namespace {

// A bijection of 64 bits whose output looks random (the finalizer of splitmix64): equal ids would need equal inputs.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

void append_hex(std::string& text, std::uint64_t value) {
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(value >> shift) & 15];
}

}  // namespace

std::string ReplyIds::next() {
  constexpr std::uint64_t kStride = 0x9e3779b97f4a7c15ULL;
  const std::uint64_t count = count_.fetch_add(1) + 1;
  std::string id;
  id.reserve(32);
  append_hex(id, mixed(seed_ + count * kStride));
  append_hex(id, mixed(~seed_ ^ count));
  return id;
}

}  // namespace linnet::api
