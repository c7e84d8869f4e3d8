#include "backends/cpu/region.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "backends/cpu/pool.h"
#include "base/clock.h"

namespace linnet::cpu {
namespace {

constexpr std::size_t kHuge = std::size_t{2} << 20;
constexpr std::size_t kPage = 4096;  // a multiple of every page is touched where pages are larger
constexpr std::size_t kPiecesPerTurn =
    2;  // of kHuge, by each thread: about a millisecond, then others that share the pool have theirs

}  // namespace

Result<Region> Region::reserve(std::size_t bytes, const char* purpose) {
  const std::size_t size = size_of(bytes);
  const std::size_t mapping_size = size + kHuge;
  void* mapping = MAP_FAILED;
  if (bytes > 0 && mapping_size > bytes) {
    mapping = mmap(nullptr, mapping_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (mapping == MAP_FAILED) {
    return Error{ErrorCode::kTooLarge,
                 "The system refused " + std::to_string(bytes) + " bytes of memory for " + purpose + " (" +
                     (bytes > 0 && mapping_size > bytes ? std::strerror(errno) : "not a possible size") +
                     "); lower --context or --max-rows, or use a smaller model.",
                 "memory_budget"};
  }
  auto* const first = static_cast<std::byte*>(mapping);
  const std::size_t skip = (kHuge - reinterpret_cast<std::uintptr_t>(first) % kHuge) % kHuge;
#ifdef MADV_HUGEPAGE
  (void)madvise(first + skip, size, MADV_HUGEPAGE);  // a wish; small pages work too
#endif
  return Region(first + skip, size, first, mapping_size);
}

std::size_t Region::size_of(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Region::Region(Region&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_size_(std::exchange(other.mapping_size_, 0)) {}

Region& Region::operator=(Region&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_size_, other.mapping_size_);
  return *this;
}

Region::~Region() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_size_);
}

std::size_t Region::touch(Pool& pool, std::chrono::nanoseconds limit) const {
  const SystemClock clock;
  const auto start = clock.now();
  const std::size_t turn = kHuge * kPiecesPerTurn * static_cast<std::size_t>(pool.threads());
  std::size_t touched = 0;
  while (touched < size_ && clock.now() - start < limit) {
    const std::size_t turn_end = std::min(size_, touched + turn);
    pool.deal(static_cast<std::int64_t>((turn_end - touched + kHuge - 1) / kHuge), [&](int, WorkQueue& pieces) {
      for (std::int64_t piece = 0, end = 0; pieces.take(piece, end);) {
        const std::size_t from = touched + static_cast<std::size_t>(piece) * kHuge;
        for (std::size_t at = from; at < std::min(turn_end, from + kHuge); at += kPage) {
          volatile std::byte* const page = data_ + at;
          *page = *page;
        }
      }
    });
    touched = turn_end;
  }
  return touched;
}

}  // namespace linnet::cpu
