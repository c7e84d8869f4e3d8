// Each *.txt of this folder is a test: its requests are sent to a real server with a scripted engine, and every byte of the
// replies must be as written. With LINNET_UPDATE_TRANSCRIPTS=1 the replies are written instead, to be read before they are
// committed.
#include "transcript.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "server/served.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string exchange(http::RawClient& client, const std::string& request) {
  client.send(request);
  if (request.starts_with("HEAD ")) return client.read_until("\r\n\r\n");
  std::string reply = client.read_response();
  if (reply.find("\r\ntransfer-encoding: chunked\r\n") != std::string::npos) reply += client.read_until("0\r\n\r\n");
  return reply;
}

void rewrite(const fs::path& path, const std::string& original, const std::vector<std::string>& replies) {
  std::string text = original;
  std::size_t at = 0;
  for (const std::string& reply : replies) {
    const std::size_t begin = text.find("\n>>>\n", at) + 5;
    const std::size_t end = std::min(text.find("\n<<<\n", begin - 1), text.size());
    const std::string block = to_block(reply) + (end == text.size() ? "\n" : "");
    text.replace(begin, end - begin, block);
    at = begin + block.size() - 1;
  }
  std::ofstream(path, std::ios::binary) << text;
}

class TranscriptFile : public testing::Test {
 public:
  explicit TranscriptFile(fs::path path) : path_(std::move(path)) {}

  void TestBody() override {
    const std::string text = read_file(path_);
    const Result<Transcript> transcript = parse_transcript(text);
    ASSERT_TRUE(transcript.ok()) << path_ << ": " << transcript.error().message;
    Served served([&](RouteContext& context) { context.strict = transcript->strict; });
    served.engine().card().reasons = served.engine().card().reasoning_switch = transcript->reasons;
    served.engine().script(transcript->script);
    served.engine().refuse(transcript->refusal);
    http::RawClient client = served.connect();
    std::vector<std::string> replies;
    for (const Exchange& expected : transcript->exchanges) replies.push_back(exchange(client, expected.request));
    if (std::getenv("LINNET_UPDATE_TRANSCRIPTS") != nullptr) return rewrite(path_, text, replies);
    for (std::size_t i = 0; i < replies.size(); ++i)
      EXPECT_EQ(to_block(replies[i]), to_block(transcript->exchanges[i].reply)) << path_;
    client.end_sending();
    EXPECT_EQ(client.read_all(), "") << path_;
  }

 private:
  const fs::path path_;
};

}  // namespace
}  // namespace linnet

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(LINNET_SOURCE_DIR "/tests/transcripts")) {
    if (entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt") files.insert(entry.path());
  }
  for (const auto& path : files) {
    testing::RegisterTest("Transcript", path.stem().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [path]() -> testing::Test* { return new linnet::TranscriptFile(path); });
  }
  return RUN_ALL_TESTS();
}
