#include "weights/testing/gguf_writer.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/check.h"

namespace linnet::testing {
namespace {

void append_bytes(std::vector<std::byte>& bytes, std::span<const std::byte> more) {
  const std::size_t size = bytes.size();
  bytes.resize(size + more.size());
  if (!more.empty()) std::memcpy(bytes.data() + size, more.data(), more.size());
}

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  append_bytes(bytes, std::as_bytes(std::span(&value, 1)));
}

void append_string(std::vector<std::byte>& bytes, std::string_view text) {
  append(bytes, std::uint64_t{text.size()});
  append_bytes(bytes, std::as_bytes(std::span(text)));
}

void pad(std::vector<std::byte>& bytes, std::size_t alignment) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
}

}  // namespace

GgufWriter::GgufWriter(std::uint32_t version, std::uint32_t alignment) : version_(version), alignment_(alignment) {
  if (alignment != kDefaultAlignment) add_u32("general.alignment", alignment);
}

void GgufWriter::add_string(std::string_view key, std::string_view value) {
  std::vector<std::byte> bytes;
  append_string(bytes, value);
  add_raw(key, static_cast<std::uint32_t>(GgufType::kString), bytes);
}

void GgufWriter::add_strings(std::string_view key, std::span<const std::string> values) {
  std::vector<std::byte> bytes;
  for (const std::string& value : values) append_string(bytes, value);
  add_array(key, static_cast<std::uint32_t>(GgufType::kString), values.size(), bytes);
}

void GgufWriter::add_array(std::string_view key, std::uint32_t element_type, std::uint64_t count,
                           std::span<const std::byte> bytes) {
  std::vector<std::byte> value;
  append(value, element_type);
  append(value, count);
  append_bytes(value, bytes);
  add_raw(key, static_cast<std::uint32_t>(GgufType::kArray), value);
}

void GgufWriter::add_raw(std::string_view key, std::uint32_t type, std::span<const std::byte> bytes) {
  append_string(metadata_, key);
  append(metadata_, type);
  append_bytes(metadata_, bytes);
  ++keys_;
}

void GgufWriter::add_tensor(std::string_view name, std::span<const std::int64_t> dims, DType dtype,
                            std::span<const std::byte> data) {
  add_raw_tensor({.name = name, .dims = {dims.begin(), dims.end()}, .gguf_type = dtype_info(dtype).gguf_type, .data = data});
}

void GgufWriter::add_raw_tensor(const RawTensor& tensor) {
  pad(data_, alignment_);
  append_string(infos_, tensor.name);
  append(infos_, static_cast<std::uint32_t>(tensor.dims.size()));
  for (const std::uint64_t size : tensor.dims) append(infos_, size);
  append(infos_, tensor.gguf_type);
  append(infos_, tensor.offset.value_or(data_.size()));
  append_bytes(data_, tensor.data);
  ++tensors_;
}

std::vector<std::byte> GgufWriter::bytes() const {
  std::vector<std::byte> bytes;
  append_bytes(bytes, std::as_bytes(std::span("GGUF", 4)));
  append(bytes, version_);
  append(bytes, tensors_);
  append(bytes, keys_);
  append_bytes(bytes, metadata_);
  append_bytes(bytes, infos_);
  pad(bytes, alignment_);
  append_bytes(bytes, data_);
  return bytes;
}

TempFile::TempFile(std::span<const std::byte> bytes, std::string_view suffix) {
  path_ = (std::filesystem::temp_directory_path() / "linnet-test-XXXXXX").string() + std::string(suffix);
  const int fd = ::mkstemps(path_.data(), static_cast<int>(suffix.size()));
  CHECK_MSG(fd >= 0, path_);
  std::FILE* file = ::fdopen(fd, "wb");
  CHECK(file != nullptr);
  CHECK(bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
  CHECK(std::fclose(file) == 0);
}

TempFile::TempFile(TempFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempFile& TempFile::operator=(TempFile&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TempFile::~TempFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace linnet::testing
