// Runs the files of a folder, and each with many small damages that are the same in every run, through a fuzz target.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/random.h"
#include "entry.h"

namespace {

constexpr int kMutations = 300;  // of each file

using Bytes = std::vector<std::uint8_t>;

Bytes mutated(Bytes bytes, linnet::Rng& rng) {
  if (bytes.empty()) return bytes;
  for (std::uint64_t change = rng.below(4) + 1; change > 0; --change) {
    // Headers come first: half of the damage is done there.
    const std::size_t at = rng.below(rng.chance(0.5) ? std::min<std::size_t>(bytes.size(), 256) : bytes.size());
    switch (rng.below(4)) {
      case 0:
        bytes[at] = static_cast<std::uint8_t>(rng.below(256));
        break;
      case 1:
        bytes[at] ^= static_cast<std::uint8_t>(1U << rng.below(8));
        break;
      case 2:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::uint8_t>(rng.below(256)));
        break;
      default:
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
        if (bytes.empty()) return bytes;
    }
  }
  if (rng.chance(0.1)) bytes.resize(rng.below(bytes.size() + 1));
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream file(entry.path(), std::ios::binary);
    const Bytes bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    linnet::Rng rng(static_cast<std::uint64_t>(bytes.size()));
    for (int i = 0; i < kMutations; ++i) {
      const Bytes damaged = mutated(bytes, rng);
      LLVMFuzzerTestOneInput(damaged.data(), damaged.size());
    }
    ++files;
  }
  std::printf("%d files, %d mutations of each\n", files, kMutations);
  return files == 0 ? 1 : 0;
}
