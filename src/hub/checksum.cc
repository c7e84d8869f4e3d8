#include "hub/checksum.h"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/check.h"

namespace linnet {

void Checksum::Free::operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }

Checksum::Checksum(const EVP_MD* kind) : context_(EVP_MD_CTX_new()) {
  CHECK(context_ != nullptr && EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1);
}

Checksum Checksum::sha256() { return Checksum(EVP_sha256()); }

Checksum Checksum::git_blob(std::uint64_t bytes) {
  Checksum checksum(EVP_sha1());
  const std::string head = "blob " + std::to_string(bytes);
  checksum.add({head.c_str(), head.size() + 1});  // with its zero byte
  return checksum;
}

void Checksum::add(std::string_view bytes) { CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1); }

std::string Checksum::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
  std::string text;
  constexpr char kDigits[] = "0123456789abcdef";
  for (unsigned int i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

Status add_file(const std::filesystem::path& path, Checksum& checksum) {
  const auto trouble = [&path] {
    return Error{ErrorCode::kIo, "cannot read " + path.string() + ": " + std::strerror(errno), path.string()};
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) return trouble();
  std::vector<char> buffer(std::size_t{1} << 20);
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    checksum.add({buffer.data(), static_cast<std::size_t>(file.gcount())});
  }
  if (!file.eof()) return trouble();
  return {};
}

Result<std::string> sha256_of_file(const std::filesystem::path& path) {
  Checksum checksum = Checksum::sha256();
  LINNET_RETURN_IF_ERROR(add_file(path, checksum));
  return checksum.finish();
}

}  // namespace linnet
