// Writes safetensors files and model folders for tests, right ones and wrong ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace linnet::testing {

// Builds the bytes of a file. Nothing is checked: what is added is written, in the order of addition, without padding, as MLX
// writes files: data begin at any byte.
class SafetensorsWriter {
 public:
  // `dtype`: as the format writes it ("BF16").
  void add(std::string_view name, std::string_view dtype, std::span<const std::int64_t> shape, std::span<const std::byte> data);
  std::vector<std::byte> bytes() const;
  bool empty() const { return header_.empty(); }

 private:
  std::string header_;
  std::vector<std::byte> data_;
};

// A file of any header and data.
std::vector<std::byte> safetensors_bytes(std::string_view header, std::span<const std::byte> data = {});

}  // namespace linnet::testing
