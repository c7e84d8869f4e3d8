// A safetensors file: its tensors as views of the mapping, everything checked against the file before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "linnet/status.h"

namespace linnet {

// What a file may ask for. Larger values are refused, naming value and limit.
struct SafetensorsLimits {
  static constexpr std::uint64_t kHeaderBytesMax = 100'000'000;  // the format's own limit
  static constexpr std::size_t kTensorsMax = 65'536;
  static constexpr std::size_t kDimensionsMax = 8;
};

struct SafetensorsTensor {
  std::string name;
  std::string dtype;                // as the format writes it: "BF16", "U32", ...
  std::vector<std::int64_t> shape;  // outermost first; >= 0
  std::span<const std::byte> data;  // of the whole tensor, row-major; as aligned as the file has it
};

// What messages say about one: "tensor 'lm_head.weight' (BF16 [10, 64])".
std::string tensor_text(const SafetensorsTensor& tensor);

// The layout: u64 header bytes, little-endian; a JSON object of that size that gives each tensor "dtype", "shape" and
// "data_offsets"; then the data, which offsets count from. Immutable.
//   1. Names are unique and not empty.
//   2. A tensor's data have the size of its shape, and tensors cover the data without gaps and overlaps, in any order.
//   3. Memory used beyond the mapping is bounded by SafetensorsLimits and by the header's size.
class SafetensorsFile {
 public:
  // Errors: those of MappedFile::open; kCorrupt, kUnsupported (an element type that is not known). Messages name file, tensor and
  // value.
  static Result<SafetensorsFile> open(const std::string& path);
  // A file in memory, which outlives the result. `path` is for messages.
  static Result<SafetensorsFile> parse(std::span<const std::byte> bytes, std::string path);

  const std::string& path() const { return path_; }
  std::span<const SafetensorsTensor> tensors() const { return tensors_; }  // by name
  // Null if there is none.
  const SafetensorsTensor* find(std::string_view name) const;
  // Hands over what the views see; empty for a file in memory. `this` keeps them.
  std::vector<MappedFile> take_mapping();

  // "file: " + what.
  Error error(ErrorCode code, std::string_view what) const;

 private:
  explicit SafetensorsFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::vector<MappedFile> mapping_;  // none or one
  std::vector<SafetensorsTensor> tensors_;
};

}  // namespace linnet
