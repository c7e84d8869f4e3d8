// Reads a GGUF file's tables. Used by GgufFile only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "linnet/status.h"
#include "weights/gguf.h"
#include "weights/gguf_cursor.h"

namespace linnet {

// One use: parse(). The layout, all numbers little-endian: "GGUF", u32 version, u64 tensors, u64 keys; the keys, each a string
// (u64 bytes, bytes), u32 type, value; the tensors, each a string, u32 rank, u64 dims[rank], u32 format, u64 offset; then, at the
// next multiple of general.alignment, the data, which offsets count from.
class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, std::string path) : bytes_(bytes), cursor_(bytes), file_(std::move(path)) {}

  Result<GgufFile> parse();

 private:
  Status header();
  Status check_version(std::uint32_t version) const;
  Status metadata();
  Status entry(std::uint64_t index);
  // Takes the value behind `parts.key` and `parts.type`.
  Status value(GgufValue::Parts& parts);
  Status array(GgufValue::Parts& parts);
  Status sort_keys();
  Status alignment();
  Status tensors();
  Status tensor(std::uint64_t index);
  Status dimensions(GgufTensor& tensor);
  Status sort_tensors();
  Status place(GgufTensor& tensor, std::uint64_t data_begin) const;
  Status check_overlap() const;

  Error corrupt(const std::string& what) const { return file_.error(ErrorCode::kCorrupt, what); }
  Error ends_inside(const std::string& what) const;

  std::span<const std::byte> bytes_;
  GgufCursor cursor_;
  GgufFile file_;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t key_count_ = 0;
  std::uint64_t alignment_ = 32;
};

}  // namespace linnet
