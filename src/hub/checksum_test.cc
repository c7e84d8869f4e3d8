#include "hub/checksum.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace linnet {
namespace {

// The published examples of FIPS 180-4, and (by coreutils' sha256sum) zeros that take several reads of the file.
TEST(Checksum, PublishedExamples) {
  struct Case {
    std::string content;
    std::string digest;
  };
  const Case cases[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
      {std::string(3'000'000, '\0'), "35bce4eae54ec8e6cc2868baa8d157914d6ae2858811b4cc0c078c94460fa26f"},
  };
  std::string pattern = testing::TempDir() + "linnet-sha-XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path file = std::filesystem::path(pattern) / "content";
  for (const Case& c : cases) {
    std::ofstream(file, std::ios::binary) << c.content;
    EXPECT_EQ(*sha256_of_file(file), c.digest) << c.content.size() << " bytes";
  }
  std::filesystem::remove_all(pattern);
}

// By `git hash-object`; the content comes in two parts.
TEST(Checksum, GitNamesBlobs) {
  const struct {
    std::string content;
    const char* name;
  } cases[] = {{"", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"},
               {"hello\n", "ce013625030ba8dba906f756967f9e9ca394464a"},
               {"{\"model_type\": \"llama\"}", "230d5f4da0da586aad26ead694ea67cd15bd6df1"}};
  for (const auto& c : cases) {
    Checksum checksum = Checksum::git_blob(c.content.size());
    checksum.add(std::string_view(c.content).substr(0, c.content.size() / 2));
    checksum.add(std::string_view(c.content).substr(c.content.size() / 2));
    EXPECT_EQ(checksum.finish(), c.name) << c.content;
  }
}

TEST(Checksum, AMissingFileIsNamed) {
  const Result<std::string> digest = sha256_of_file("/nowhere/at/all");
  ASSERT_FALSE(digest.ok());
  EXPECT_EQ(digest.error().code, ErrorCode::kIo);
  EXPECT_NE(digest.error().message.find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace linnet
