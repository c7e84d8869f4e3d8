// A folder for a test's files.
#pragma once

#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace linnet::testing {

// In the system's folder for temporary files; removed with all that is in it when this object goes. Move-only.
class TempFolder {
 public:
  TempFolder() : path_((std::filesystem::temp_directory_path() / "linnet-test-XXXXXX").string()) {
    CHECK_MSG(::mkdtemp(path_.data()) != nullptr, path_);
  }
  TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TempFolder& operator=(TempFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~TempFolder() {
    std::error_code failed;
    if (!path_.empty()) std::filesystem::remove_all(path_, failed);
  }

  const std::string& path() const { return path_; }
  // The path of what is called so in it, whether it exists or not.
  std::string file(std::string_view name) const { return (std::filesystem::path(path_) / name).string(); }
  // `name`: may have folders in it, which are made.
  void write(std::string_view name, std::span<const std::byte> bytes) const {
    const std::filesystem::path path = file(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream stream(path, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    stream.close();
    CHECK_MSG(stream.good(), path.string());
  }
  void write(std::string_view name, std::string_view text) const { write(name, std::as_bytes(std::span(text))); }
  void remove(std::string_view name) const { std::filesystem::remove_all(file(name)); }

 private:
  std::string path_;
};

}  // namespace linnet::testing
