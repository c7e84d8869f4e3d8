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

// A folder in the system's folder for temporary files; removed with this object. Move-only.
class TempFolder {
 public:
  TempFolder();
  TempFolder(TempFolder&& other) noexcept;
  TempFolder& operator=(TempFolder&& other) noexcept;
  ~TempFolder();

  const std::string& path() const { return path_; }
  // `name`: may have folders in it, which are made.
  void write(std::string_view name, std::span<const std::byte> bytes) const;
  void write(std::string_view name, std::string_view text) const { write(name, std::as_bytes(std::span(text))); }
  void remove(std::string_view name) const;

 private:
  std::string path_;
};

}  // namespace linnet::testing
