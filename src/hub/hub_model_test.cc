// Fetching from a small hub on loopback, and every way in which that goes wrong.
#include "hub/hub_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "hub/file_lock.h"
#include "hub/hub_cache.h"
#include "hub/test_hub.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Bytes without a period, so that a part at a wrong place shows.
std::string weights(std::size_t bytes) {
  std::string content(bytes, '\0');
  std::uint32_t state = 1;
  for (char& c : content) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return content;
}

class HubModel : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "linnet-hub-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    hub_.add("config.json", R"({"model_type": "llama"})");
    hub_.add("tokenizer.json", "{}");
    hub_.add("model.safetensors", content_, true);
    hub_.add("pytorch_model.bin", "not wanted", true);
    options_.endpoint = hub_.url();
    options_.cache = root_ / "cache";
    options_.stall = std::chrono::seconds(1);
    options_.say = [this](std::string_view line) { said_ += std::string(line) + "\n"; };
    options_.wait = [this](std::chrono::milliseconds time) { waits_.push_back(time.count()); };
    options_.stop = stop_.get_token();
  }
  void TearDown() override { fs::remove_all(root_); }

  Result<fs::path> fetch(const std::string& name = "org/name") { return fetch_hub_model(*parse_hub_name(name), options_); }
  // The error's message, or "".
  std::string trouble(const std::string& name = "org/name") {
    const Result<fs::path> path = fetch(name);
    return path.ok() ? "" : path.error().message;
  }
  fs::path folder() const { return options_.cache / "models--org--name"; }
  fs::path blob(const std::string& file) const { return folder() / "blobs" / hub_.hash(file); }
  fs::path partial() const { return fs::path(blob("model.safetensors")) += ".incomplete"; }
  void expect_whole() {
    const Result<fs::path> path = fetch();
    ASSERT_TRUE(path.ok()) << path.error().message;
    EXPECT_EQ(read(*path / "model.safetensors"), content_);
    EXPECT_FALSE(fs::exists(partial()));
  }
  // No name says that there is a model.
  void expect_no_snapshot() {
    EXPECT_FALSE(fs::exists(folder() / "snapshots" / TestHub::kCommit));
    EXPECT_FALSE(fs::exists(folder() / "refs" / "main"));
  }
  static bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

  const std::string content_ = weights(3'000'000);
  TestHub hub_;
  fs::path root_;
  HubOptions options_;
  std::stop_source stop_;
  std::string said_;
  std::vector<std::int64_t> waits_;  // ms
};

TEST_F(HubModel, TheCacheIsLaidOutAsOtherToolsDo) {
  hub_.add("additional_chat_templates/tool.jinja", "{{ tools }}");
  const Result<fs::path> path = fetch();
  ASSERT_TRUE(path.ok()) << path.error().message;
  EXPECT_EQ(*path, folder() / "snapshots" / TestHub::kCommit);
  EXPECT_EQ(read(*path / "config.json"), R"({"model_type": "llama"})");
  EXPECT_EQ(read(*path / "model.safetensors"), content_);
  EXPECT_EQ(fs::read_symlink(*path / "config.json"), "../../blobs/" + hub_.hash("config.json"));
  EXPECT_EQ(fs::read_symlink(*path / "additional_chat_templates" / "tool.jinja"),
            "../../../blobs/" + hub_.hash("additional_chat_templates/tool.jinja"));
  EXPECT_EQ(read(*path / "additional_chat_templates" / "tool.jinja"), "{{ tools }}");
  EXPECT_EQ(read(folder() / "refs" / "main"), TestHub::kCommit);
  EXPECT_FALSE(fs::exists(*path / "pytorch_model.bin"));
  EXPECT_EQ(hub_.hash("model.safetensors").size(), 64U);
  EXPECT_EQ(hub_.hash("config.json").size(), 40U);
  EXPECT_TRUE(fs::exists(options_.cache / ".locks" / "models--org--name" / (hub_.hash("config.json") + ".lock")));
}

TEST_F(HubModel, WhatIsThereIsNotFetchedAgain) {
  ASSERT_TRUE(fetch().ok());
  const std::size_t requests = hub_.requests().size();
  ASSERT_TRUE(fetch().ok());
  EXPECT_EQ(hub_.requests().size(), requests + 1);  // the list
  fs::remove(blob("config.json"));
  ASSERT_TRUE(fetch().ok());
  EXPECT_EQ(hub_.requests().size(), requests + 3);
}

TEST_F(HubModel, ProgressCountsAllFiles) {
  hub_.add("vocab.json", "{}");  // the same blob as tokenizer.json
  std::vector<FetchProgress> seen;
  options_.progress = [&seen](const FetchProgress& progress) { seen.push_back(progress); };
  ASSERT_TRUE(fetch().ok());
  const std::uint64_t total = content_.size() + 23 + 2 + 2;
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().done, total);
  std::uint64_t before = 0;
  for (const FetchProgress& progress : seen) {
    EXPECT_EQ(progress.total, total);
    EXPECT_GE(progress.done, before);
    before = progress.done;
  }
  seen.clear();
  said_.clear();
  ASSERT_TRUE(fetch().ok());
  EXPECT_TRUE(seen.empty());
  EXPECT_EQ(said_, "org/name at 0123456789ab is here\n");
  fs::remove(blob("config.json"));
  ASSERT_TRUE(fetch().ok());
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front().done, total);  // the others were there
}

TEST_F(HubModel, ACutConnectionGoesOnWhereItStopped) {
  hub_.fail("store/model", {.body = content_, .body_bytes_sent = 1'000'000});
  hub_.fail("store/model", {.status = 206,
                            .headers = {"Content-Range: bytes 1000000-2999999/3000000"},
                            .body = content_.substr(1'000'000),
                            .body_bytes_sent = 500'000});
  expect_whole();
  const std::vector<HubRequest> requests = hub_.store_requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].range, "");
  EXPECT_EQ(requests[1].range, "bytes=1000000-");
  EXPECT_EQ(requests[2].range, "bytes=1500000-");
}

// Without a length a cut looks like an end.
TEST_F(HubModel, ACutReplyWithoutLengthIsSeenByItsSize) {
  hub_.fail("store/model", {.body = content_, .body_bytes_sent = 1'000'000, .no_length = true});
  EXPECT_TRUE(contains(trouble(), "ended after 1000000 of 3000000 bytes"));
  expect_no_snapshot();
  expect_whole();
}

TEST_F(HubModel, AnInterruptedFetchIsGoneOnWithByTheNextRun) {
  options_.attempts_max = 1;
  hub_.fail("store/model", {.body = content_, .body_bytes_sent = 1'000'000});
  EXPECT_TRUE(contains(trouble(), "what has come is kept"));
  EXPECT_EQ(fs::file_size(partial()), 1'000'000U);
  expect_no_snapshot();
  expect_whole();
  EXPECT_EQ(hub_.store_requests().back().range, "bytes=1000000-");
  EXPECT_TRUE(contains(said_, "(2.0 MB of 3.0 MB to fetch)")) << said_;
}

TEST_F(HubModel, AStopIsHeardWithinATransfer) {
  options_.progress = [this](const FetchProgress& progress) {
    if (progress.done > 1'000'000) stop_.request_stop();
  };
  hub_.fail("store/model", {.body = content_, .body_bytes_sent = 2'000'000, .stall = true});
  const Result<fs::path> path = fetch();
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().code, ErrorCode::kCancelled);
  EXPECT_GT(fs::file_size(partial()), 1'000'000U);
  expect_no_snapshot();
}

TEST_F(HubModel, AServerThatDoesNotKnowRangesSendsAllOfIt) {
  hub_.fail("store/model", {.body = content_, .body_bytes_sent = 1'000'000});
  hub_.fail("store/model", {.body = content_});
  expect_whole();
}

TEST_F(HubModel, AStandingTransferCountsAsCut) {
  hub_.fail("store/model", {.body = content_, .body_bytes_sent = 1'500'000, .stall = true});
  expect_whole();
  EXPECT_TRUE(contains(said_, "broke")) << said_;
}

TEST_F(HubModel, WrongBytesAreRemovedAndNamed) {
  std::string wrong = content_;
  wrong[1'234'567] = static_cast<char>(wrong[1'234'567] + 1);
  hub_.replace_content("model.safetensors", wrong);
  const Result<fs::path> path = fetch();
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(contains(path.error().message, "instead of " + hub_.hash("model.safetensors"))) << path.error().message;
  EXPECT_FALSE(fs::exists(partial()));
  EXPECT_FALSE(fs::exists(blob("model.safetensors")));
  expect_no_snapshot();
}

TEST_F(HubModel, WrongBytesOfASmallFileAreSeenByTheirGitName) {
  hub_.fail("config.json", {.body = R"({"model_type": "evil!"})"});
  EXPECT_TRUE(contains(trouble(), "config.json has the checksum"));
  expect_no_snapshot();
}

TEST_F(HubModel, WrongBytesOfAFormerRunAreFetchedAnew) {
  fs::create_directories(folder() / "blobs");
  std::ofstream(partial(), std::ios::binary) << std::string(1'000'000, 'x');
  expect_whole();
  EXPECT_TRUE(contains(said_, "fetching all of it")) << said_;
}

TEST_F(HubModel, LeftoversOfEverySizeEndWell) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, content_.size() - 1, content_.size(), content_.size() + 1}) {
    fs::remove_all(options_.cache);
    fs::create_directories(folder() / "blobs");
    std::ofstream(partial(), std::ios::binary) << (content_ + "x").substr(0, bytes);
    expect_whole();
  }
}

TEST_F(HubModel, WrongLengthsAreNamed) {
  hub_.replace_content("model.safetensors", content_ + "more");
  EXPECT_TRUE(contains(trouble(), "sends more than the 3000000 bytes"));
  hub_.replace_content("model.safetensors", content_.substr(0, 2'000'000));
  fs::remove_all(options_.cache);
  EXPECT_TRUE(contains(trouble(), "ended after 2000000 of 3000000 bytes"));
  expect_no_snapshot();
}

TEST_F(HubModel, AnotherPartThanAskedForIsRefused) {
  fs::create_directories(folder() / "blobs");
  std::ofstream(partial(), std::ios::binary) << content_.substr(0, 10);
  hub_.fail("store/model", {.status = 206, .headers = {"Content-Range: bytes 11-2999999/3000000"}, .body = content_.substr(11)});
  EXPECT_TRUE(contains(trouble(), "from byte 10 of 3000000 and sends another part"));
}

TEST_F(HubModel, AnotherEtagThanListedIsRefused) {
  hub_.fail("model.safetensors", {.status = 302,
                                  .headers = {"Location: " + hub_.store_url() + "/model.safetensors",
                                              "X-Linked-Etag: \"" + std::string(64, 'f') + "\""}});
  EXPECT_TRUE(contains(trouble(), "sends " + std::string(64, 'f')));
}

TEST_F(HubModel, TheTokenStaysWithTheHub) {
  options_.token = "hf_secret";
  ASSERT_TRUE(fetch().ok());
  for (const HubRequest& request : hub_.requests()) EXPECT_EQ(request.authorization, "Bearer hf_secret") << request.path;
  ASSERT_FALSE(hub_.store_requests().empty());
  for (const HubRequest& request : hub_.store_requests()) EXPECT_EQ(request.authorization, "") << request.path;
}

TEST_F(HubModel, TheTokenDoesNotGoOverANetworkInTheClear) {
  options_.token = "hf_secret";
  options_.endpoint = "http://0.0.0.0" + hub_.url().substr(hub_.url().rfind(':'));  // this machine, by a name that says otherwise
  ASSERT_TRUE(fetch().ok());
  for (const HubRequest& request : hub_.requests()) EXPECT_EQ(request.authorization, "") << request.path;
}

TEST_F(HubModel, PassingTroubleIsTriedAgain) {
  hub_.fail("/api/", {.status = 503});
  hub_.fail("/api/", {.status = 429, .headers = {"Retry-After: 7"}});
  hub_.fail("config.json", {.status = 502});
  hub_.fail("store/model", {.status = 500});
  hub_.fail("store/model", {.status = 429, .headers = {"RateLimit: \"resolvers\";r=0;t=55"}});
  expect_whole();
  EXPECT_EQ(waits_, (std::vector<std::int64_t>{1000, 7000, 1000, 1000, 55000}));
}

TEST_F(HubModel, LastingTroubleEndsAfterFiveAttempts) {
  for (int i = 0; i < 9; ++i) hub_.fail("/api/", {.status = 503});
  const std::string said = trouble();
  EXPECT_TRUE(contains(said, "it answers 503")) << said;
  EXPECT_EQ(hub_.requests().size(), 5U);
  EXPECT_EQ(waits_, (std::vector<std::int64_t>{1000, 2000, 4000, 8000}));
}

TEST_F(HubModel, ALongWaitIsLeftToTheUser) {
  hub_.fail("/api/", {.status = 429, .headers = {"Retry-After: 3600"}});
  const std::string said = trouble();
  EXPECT_TRUE(contains(said, "in 3600 s, or set HF_TOKEN")) << said;
  EXPECT_TRUE(waits_.empty());
}

TEST_F(HubModel, RefusalsSayWhatToDo) {
  struct Case {
    int status;
    std::string code;
    std::string where;
    bool token;
    ErrorCode error;
    std::string part;
  };
  const std::string settings = hub_.url() + "/settings/tokens";
  const Case cases[] = {
      {401, "GatedRepo", "model.safetensors", false, ErrorCode::kInvalidArgument,
       "accept its terms at " + hub_.url() + "/org/name"},
      {403, "GatedRepo", "model.safetensors", true, ErrorCode::kInvalidArgument, "may not read it: ask for access"},
      {401, "RepoNotFound", "/api/", false, ErrorCode::kNotFound, "check the name, and for a private one set HF_TOKEN"},
      {404, "RepoNotFound", "/api/", true, ErrorCode::kNotFound, "the account of your token"},
      {401, "", "/api/", false, ErrorCode::kInvalidArgument, "set HF_TOKEN to a token of " + settings},
      {401, "", "/api/", true, ErrorCode::kInvalidArgument, "does not take your token"},
      {403, "", "/api/", true, ErrorCode::kInvalidArgument, "change what it may do at " + settings},
      {404, "RevisionNotFound", "/api/", false, ErrorCode::kNotFound, "has no revision \"main\""},
      {404, "", "/api/", false, ErrorCode::kNotFound, "there is no org/name with revision \"main\""},
      {404, "EntryNotFound", "config.json", false, ErrorCode::kNotFound, "lists config.json of org/name and does not have it"},
      {418, "", "/api/", false, ErrorCode::kIo, "answers 418"},
      {416, "", "config.json", false, ErrorCode::kIo, "answers 416"},
  };
  for (const Case& c : cases) {
    fs::remove_all(options_.cache);
    options_.token = c.token ? "hf_secret" : "";
    hub_.fail(c.where, {.status = c.status, .headers = {"X-Error-Code: " + c.code}});
    const Result<fs::path> path = fetch();
    ASSERT_FALSE(path.ok()) << c.part;
    EXPECT_EQ(path.error().code, c.error) << c.part;
    EXPECT_TRUE(contains(path.error().message, c.part)) << path.error().message;
    EXPECT_FALSE(contains(path.error().message, "secret"));
  }
  EXPECT_TRUE(waits_.empty());
}

TEST_F(HubModel, AMachineThatIsOfflineIsToldAtOnce) {
  std::string gone;
  { gone = TestHub().url(); }
  options_.endpoint = gone;
  const std::string said = trouble();
  EXPECT_TRUE(contains(said, "cannot reach " + gone)) << said;
  EXPECT_TRUE(contains(said, "is this machine online?")) << said;
  EXPECT_TRUE(waits_.empty());
}

TEST_F(HubModel, RepliesThatAreNoHubsAreRefused) {
  hub_.fail("/api/", {.body = "<html>please sign in to this network</html>"});
  EXPECT_TRUE(contains(trouble(), "is HF_ENDPOINT a Hugging Face hub?"));
  hub_.fail("/api/", {.body = std::string(std::size_t{17} << 20, ' ')});
  EXPECT_TRUE(contains(trouble(), "has more than 16777216 bytes"));
  hub_.fail("/api/", {.status = 302, .headers = {"Location: file:///etc/passwd"}});
  EXPECT_TRUE(contains(trouble(), "redirects to where nothing can be fetched"));
  for (int i = 0; i < 7; ++i) hub_.fail("/api/", {.status = 302, .headers = {"Location: /api/around"}});
  EXPECT_TRUE(contains(trouble(), "redirects to where nothing can be fetched"));
}

TEST_F(HubModel, AFullDiskIsNamed) {
  fs::create_directories(folder() / "blobs");
  fs::create_symlink("/dev/full", partial());
  const std::string said = trouble();
  EXPECT_TRUE(contains(said, "the disk is full")) << said;
  EXPECT_TRUE(contains(said, "HF_HOME")) << said;
  expect_no_snapshot();
}

TEST_F(HubModel, TooLittleDiskIsSaidBeforeAnythingComes) {
  hub_.fail("/api/",
            {.body = R"({"sha": ")" + std::string(40, 'a') + R"(", "siblings": [{"rfilename": "model.safetensors", "size": )" +
                     std::to_string(std::uint64_t{1} << 60U) + R"(, "blobId": ")" + std::string(40, 'b') + "\"}]}"});
  const std::string said = trouble();
  EXPECT_TRUE(contains(said, "needs 1152921504606846976")) << said;
  EXPECT_TRUE(contains(said, "set HF_HOME")) << said;
  EXPECT_EQ(hub_.requests().size(), 1U);
}

TEST_F(HubModel, AnUnwritableCacheIsNamed) {
  std::ofstream(root_ / "file") << "not a folder";
  options_.cache = root_ / "file";
  EXPECT_TRUE(contains(trouble(), (root_ / "file").string()));
}

TEST_F(HubModel, AnotherProcessIsWaitedFor) {
  fs::create_directories(folder() / "blobs");
  fs::create_directories(options_.cache / ".locks" / "models--org--name");
  std::optional<FileLock> other =
      *FileLock::acquire(options_.cache / ".locks" / "models--org--name" / (hub_.hash("model.safetensors") + ".lock"));
  options_.wait = [&](std::chrono::milliseconds) {
    std::ofstream(blob("model.safetensors"), std::ios::binary) << content_;
    other.reset();
  };
  expect_whole();
  EXPECT_TRUE(contains(said_, "waiting: another process is fetching model.safetensors")) << said_;
  EXPECT_TRUE(hub_.store_requests().empty());
}

TEST_F(HubModel, WaitingForAnotherProcessCanBeStopped) {
  fs::create_directories(options_.cache / ".locks" / "models--org--name");
  const Result<FileLock> other =
      FileLock::acquire(options_.cache / ".locks" / "models--org--name" / (hub_.hash("config.json") + ".lock"));
  options_.wait = [this](std::chrono::milliseconds) { stop_.request_stop(); };
  EXPECT_TRUE(contains(trouble(), "interrupted"));
}

TEST_F(HubModel, AGgufIsReturnedByItsPath) {
  TestHub hub;
  hub.add("m-Q8_0.gguf", content_, true);
  hub.add("m-Q4_0.gguf", "four", true);
  options_.endpoint = hub.url();
  const Result<fs::path> path = fetch("org/name:q4_0");
  ASSERT_TRUE(path.ok()) << path.error().message;
  EXPECT_EQ(*path, folder() / "snapshots" / TestHub::kCommit / "m-Q4_0.gguf");
  EXPECT_EQ(read(*path), "four");
  EXPECT_TRUE(contains(trouble(), "m-Q8_0.gguf  3.0 MB"));
}

TEST_F(HubModel, RevisionsAndPathsAreEncoded) {
  hub_.fail("/api/models/org/name/revision/refs%2Fpr%2F1?blobs=true", {.status = 404});
  EXPECT_TRUE(contains(trouble("org/name@refs/pr/1"), "refs/pr/1"));
  EXPECT_EQ(hub_.requests().back().path, "/api/models/org/name/revision/refs%2Fpr%2F1?blobs=true");
}

}  // namespace
}  // namespace linnet
