#include "hub/hub_listing.h"

#include <gtest/gtest.h>

#include <string>

namespace linnet {
namespace {

const std::string kCommit(40, 'c');
const std::string kSha1(40, 'a');
const std::string kSha256(64, 'b');

std::string reply(const std::string& siblings, const std::string& commit = kCommit) {
  return R"({"id": "org/name", "sha": ")" + commit + R"(", "siblings": )" + siblings + "}";
}

TEST(HubListing, SmallAndLargeFilesAreRead) {
  const Result<HubListing> listing =
      parse_hub_listing(reply(R"([{"rfilename": "config.json", "size": 12, "blobId": ")" + kSha1 + R"("},
          {"rfilename": "sub/model.safetensors", "size": 9, "blobId": ")" +
                              kSha1 + R"(", "lfs": {"sha256": ")" + kSha256 +
                              R"(", "size": 5000000000, "pointerSize": 134}}, {"rfilename": "x", "size": 0, "blobId": ")" +
                              kSha1 + R"(", "lfs": null}])"));
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  EXPECT_EQ(
      *listing,
      (HubListing{kCommit, {{"config.json", 12, kSha1}, {"sub/model.safetensors", 5'000'000'000, kSha256}, {"x", 0, kSha1}}}));
}

TEST(HubListing, HostileRepliesAreRefused) {
  const auto file = [](const std::string& fields) { return reply("[{" + fields + "}]"); };
  const struct {
    std::string json;
    const char* message;
  } cases[] = {
      {"", "is not a JSON object"},
      {"<html>sign in</html>", "is not a JSON object"},
      {"[]", "is not a JSON object"},
      {"{}", "does not tell its commit"},
      {reply("[]", "main"), "does not tell its commit"},
      {reply("[]", "../../../../../../../../../../../tmp/evil"), "does not tell its commit"},
      {reply("{}"), "is missing"},
      {reply("[1]"), "holds something that is no file"},
      {file(R"("size": 1)"), "names a path outside the repository"},
      {file(R"("rfilename": "../x", "size": 1)"), "names a path outside the repository"},
      {file(R"("rfilename": "/etc/passwd", "size": 1)"), "names a path outside the repository"},
      {file(R"("rfilename": "a\u0000b", "size": 1)"), "names a path outside the repository"},
      {file(R"("rfilename": "a")"), "does not tell the size of a"},
      {file(R"("rfilename": "a", "size": -1)"), "does not tell the size of a"},
      {file(R"("rfilename": "a", "size": 1.5)"), "does not tell the size of a"},
      {file(R"("rfilename": "a", "size": 99999999999999999999)"), "does not tell the size of a"},
      {file(R"("rfilename": "a", "size": 1)"), "does not tell the checksum of a"},
      {file(R"("rfilename": "a", "size": 1, "blobId": "../x")"), "does not tell the checksum of a"},
      {file(R"("rfilename": "a", "size": 1, "blobId": ")" + kSha256 + "\""), "does not tell the checksum of a"},
      {file(R"("rfilename": "a", "size": 1, "blobId": ")" + kSha1 + R"(", "lfs": {"sha256": ")" + kSha256 + "\"}"),
       "does not tell the size of a"},
  };
  for (const auto& c : cases) {
    const Result<HubListing> listing = parse_hub_listing(c.json);
    ASSERT_FALSE(listing.ok()) << c.json;
    EXPECT_EQ(listing.error().code, ErrorCode::kCorrupt) << c.json;
    EXPECT_NE(listing.error().message.find(c.message), std::string::npos) << listing.error().message << "\n" << c.json;
  }
  EXPECT_FALSE(parse_hub_listing(std::string(1'000'000, '[')).ok());  // no recursion
}

}  // namespace
}  // namespace linnet
