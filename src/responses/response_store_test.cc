#include "responses/response_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "base/testing/temp_folder.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

StoredResponse response(const std::string& id, const std::string& owner = "") {
  return {.id = id, .owner = owner, .response = "{\"id\":\"" + id + "\"}", .items = "[\"\\u00e9\"]", .output = "[]"};
}

std::unique_ptr<ResponseStore> opened(const fs::path& path, const Clock& clock, const ResponseStoreLimits& limits = {}) {
  auto store = ResponseStore::open(path, clock, limits);
  EXPECT_TRUE(store.ok());
  return *std::move(store);
}

bool has(ResponseStore& store, const std::string& id) { return store.get(id, "")->has_value(); }

TEST(ResponseStore, KeepsOverARestartAndForItsOwnerAlone) {
  const testing::TempFolder folder;
  const fs::path path = fs::path(folder.path()) / "linnet" / "responses.sqlite3";
  VirtualClock clock;
  ASSERT_TRUE(opened(path, clock)->put(response("a", "me")).ok());
  const auto store = opened(path, clock);
  EXPECT_EQ(**store->get("a", "me"), response("a", "me"));
  EXPECT_FALSE(store->get("a", "you")->has_value());
  EXPECT_FALSE(store->get("a", "")->has_value());
  EXPECT_FALSE(store->get("b", "me")->has_value());
  EXPECT_FALSE(*store->remove("a", "you"));
  EXPECT_TRUE(*store->remove("a", "me"));
  EXPECT_FALSE(*store->remove("a", "me"));
  for (const auto& entry : fs::directory_iterator(path.parent_path())) {
    struct stat found {};
    ASSERT_EQ(::stat(entry.path().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600U) << entry.path();
  }
  struct stat found {};
  ASSERT_EQ(::stat(path.parent_path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700U);
}

TEST(ResponseStore, TheOldestMakeRoom) {
  VirtualClock clock;
  const std::int64_t one = static_cast<std::int64_t>(response("a").response.size() + response("a").items.size() + 2);
  const auto store = opened({}, clock, {.bytes_max = 2 * one, .age_max_s = 100});
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(store->put(response(id)).ok());
  EXPECT_FALSE(has(*store, "a"));
  EXPECT_TRUE(has(*store, "b"));
  EXPECT_TRUE(has(*store, "c"));
  StoredResponse large = response("d");
  large.items = std::string(static_cast<std::size_t>(2 * one), ' ');
  EXPECT_EQ(store->put(large).error().code, ErrorCode::kTooLarge);
  EXPECT_TRUE(has(*store, "b"));
}

TEST(ResponseStore, TheOldAreGone) {
  VirtualClock clock;
  const auto store = opened({}, clock, {.age_max_s = 100});
  ASSERT_TRUE(store->put(response("a")).ok());
  clock.advance(std::chrono::seconds(100));
  EXPECT_TRUE(has(*store, "a"));
  clock.advance(std::chrono::seconds(1));
  EXPECT_FALSE(has(*store, "a"));
}

TEST(ResponseStore, AnIdIsTakenOnce) {
  VirtualClock clock;
  const auto store = opened({}, clock);
  ASSERT_TRUE(store->put(response("a", "me")).ok());
  EXPECT_EQ(store->put(response("a", "you")).error().code, ErrorCode::kIo);
  EXPECT_TRUE(store->put(response("b")).ok());
  EXPECT_EQ(**store->get("a", "me"), response("a", "me"));
}

TEST(ResponseStore, OtherFilesAreNamed) {
  const testing::TempFolder folder;
  VirtualClock clock;
  const fs::path file = fs::path(folder.path()) / "notes.txt";
  std::ofstream(file) << std::string(5000, 'x');
  const auto corrupt = ResponseStore::open(file, clock);
  ASSERT_FALSE(corrupt.ok());
  EXPECT_EQ(corrupt.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(corrupt.error().message.find(file.string()), std::string::npos);
  const auto nowhere = ResponseStore::open(file / "x", clock);
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().code, ErrorCode::kIo);
}

TEST(ResponseStore, ThreadsShareIt) {
  const testing::TempFolder folder;
  VirtualClock clock;
  const auto store = opened(fs::path(folder.path()) / "r.sqlite3", clock);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(store->put(response(std::to_string(t) + "-" + std::to_string(i))).ok());
    });
  }
  for (auto& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(has(*store, std::to_string(t) + "-" + std::to_string(i)));
  }
}

}  // namespace
}  // namespace linnet
