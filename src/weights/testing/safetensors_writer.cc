#include "weights/testing/safetensors_writer.h"

#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/check.h"

namespace linnet::testing {

namespace fs = std::filesystem;

void SafetensorsWriter::add(std::string_view name, std::string_view dtype, std::span<const std::int64_t> shape,
                            std::span<const std::byte> data) {
  header_ += header_.empty() ? "{" : ",";
  header_ += "\"" + std::string(name) + "\":{\"data_offsets\":[" + std::to_string(data_.size()) + "," +
             std::to_string(data_.size() + data.size()) + "],\"dtype\":\"" + std::string(dtype) + "\",\"shape\":[";
  for (std::size_t i = 0; i < shape.size(); ++i) header_ += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  header_ += "]}";
  data_.insert(data_.end(), data.begin(), data.end());
}

std::vector<std::byte> SafetensorsWriter::bytes() const {
  return safetensors_bytes(header_.empty() ? "{}" : header_ + "}", data_);
}

std::vector<std::byte> safetensors_bytes(std::string_view header, std::span<const std::byte> data) {
  const std::uint64_t size = header.size();
  std::vector<std::byte> bytes(sizeof size + header.size() + data.size());
  std::memcpy(bytes.data(), &size, sizeof size);
  if (!header.empty()) std::memcpy(bytes.data() + sizeof size, header.data(), header.size());
  if (!data.empty()) std::memcpy(bytes.data() + sizeof size + header.size(), data.data(), data.size());
  return bytes;
}

TempFolder::TempFolder() {
  path_ = (fs::temp_directory_path() / "linnet-test-XXXXXX").string();
  CHECK_MSG(::mkdtemp(path_.data()) != nullptr, path_);
}

TempFolder::TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempFolder& TempFolder::operator=(TempFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TempFolder::~TempFolder() {
  std::error_code failed;
  if (!path_.empty()) fs::remove_all(path_, failed);
}

void TempFolder::write(std::string_view name, std::span<const std::byte> bytes) const {
  const fs::path path = fs::path(path_) / name;
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  CHECK_MSG(file.good(), path.string());
}

void TempFolder::remove(std::string_view name) const { fs::remove_all(fs::path(path_) / name); }

}  // namespace linnet::testing
