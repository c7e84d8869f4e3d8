#include "weights/testing/safetensors_writer.h"

#include <cstring>

namespace linnet::testing {

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

}  // namespace linnet::testing
