#include "hub/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "base/check.h"

namespace linnet {

Result<std::string> sha256_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::kIo, "cannot read " + path.string() + ": " + std::strerror(errno), path.string()};
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  CHECK(context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1);
  std::vector<char> buffer(std::size_t{1} << 20);
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    CHECK(EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(file.gcount())) == 1);
  }
  if (!file.eof()) return Error{ErrorCode::kIo, "cannot read " + path.string() + ": " + std::strerror(errno), path.string()};
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  CHECK(EVP_DigestFinal_ex(context.get(), digest.data(), &size) == 1);
  std::string text;
  constexpr char kDigits[] = "0123456789abcdef";
  for (unsigned int i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace linnet
