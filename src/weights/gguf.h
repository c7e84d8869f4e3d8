// A GGUF file: metadata and tensors as views of the mapping, everything checked against the file before it is used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "linnet/status.h"
#include "weights/gguf_value.h"
#include "weights/tensor.h"

namespace linnet {

// What a file may ask for. Larger values are refused, naming value and limit.
struct GgufLimits {
  static constexpr std::uint64_t kMetadataMax = 65'536;  // keys
  static constexpr std::uint64_t kTensorsMax = 65'536;
  static constexpr std::uint64_t kKeyBytesMax = 65'535;
  static constexpr std::uint64_t kTensorNameBytesMax = 255;
  static constexpr std::uint32_t kDimensionsMax = 4;
  static constexpr std::int64_t kAlignmentMin = 8;  // so that every number of a tensor is aligned in memory
  static constexpr std::int64_t kAlignmentMax = 65'536;
};

// One line of the file's table of tensors.
struct GgufTensor {
  std::string_view name;
  std::uint32_t gguf_type = 0;
  std::optional<DType> dtype{};        // empty: a format that is not supported
  std::array<std::int64_t, 4> dims{};  // innermost first, as the file has them; >= 1
  std::int32_t rank = 0;               // 1 .. 4
  std::uint64_t offset = 0;            // of the data in the file's data section
  std::span<const std::byte> data{};   // empty without a dtype
};

// Immutable; any thread may read it. Versions 2 and 3, little-endian.
//   1. Keys are unique and not empty; so are tensor names.
//   2. Tensor data are aligned, inside the file, and do not overlap.
//   3. Memory used beyond the mapping is bounded by GgufLimits and by the file's size.
class GgufFile {
 public:
  // Errors: those of MappedFile::open; kCorrupt; kUnsupported (version, byte order, value type, arrays of arrays). Messages name
  // file, field and value.
  static Result<GgufFile> open(const std::string& path);
  // A file in memory, which outlives the result; aligned to GgufLimits::kAlignmentMin. `path` is for messages.
  static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string path);

  const std::string& path() const { return *path_; }
  std::uint32_t version() const { return version_; }

  // Null if there is no such key.
  const GgufValue* find(std::string_view key) const;
  // Error (kCorrupt): there is no such key.
  Result<const GgufValue*> require(std::string_view key) const;
  std::span<const GgufValue> metadata() const { return metadata_; }  // in the file's order

  const GgufTensor* find_tensor(std::string_view name) const;
  std::span<const GgufTensor> tensors() const { return tensors_; }  // in the file's order

  // As a matrix. Errors (kUnsupported), naming tensor and reason: a format that is not supported, more than two dimensions.
  Result<Tensor> matrix(const GgufTensor& tensor) const;

  // "file: " + what.
  Error error(ErrorCode code, std::string_view what) const;

 private:
  friend class GgufParser;
  explicit GgufFile(std::string path) : path_(std::make_unique<const std::string>(std::move(path))) {}

  std::unique_ptr<const std::string> path_;  // its address is kept by the values
  std::optional<MappedFile> mapping_;
  std::uint32_t version_ = 0;
  std::vector<GgufValue> metadata_;
  std::vector<GgufTensor> tensors_;
  std::vector<std::uint32_t> keys_sorted_;     // indices into metadata_
  std::vector<std::uint32_t> tensors_sorted_;  // indices into tensors_, by name
};

// The name of a tensor format, also of those that are not supported: "Q4_0", "IQ2_XS", "type 77".
std::string gguf_tensor_type_text(std::uint32_t gguf_type);

}  // namespace linnet
