// Checksums of files.
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "linnet/status.h"

namespace linnet {

// A digest that grows with the bytes it is given. Move-only.
class Checksum {
 public:
  static Checksum sha256();  // FIPS 180-4
  // What git names a file of this many bytes: SHA-1 over "blob <bytes>\0" and the content.
  static Checksum git_blob(std::uint64_t bytes);

  void add(std::string_view bytes);
  // In lower-case hexadecimal. Ends the object's life: nothing may be added afterwards.
  std::string finish();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const;
  };
  explicit Checksum(const EVP_MD* kind);
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

// Adds a file's content, from its beginning. Error: kIo.
Status add_file(const std::filesystem::path& path, Checksum& checksum);
// SHA-256 of a file's content, in lower-case hexadecimal. Error: kIo.
Result<std::string> sha256_of_file(const std::filesystem::path& path);

}  // namespace linnet
