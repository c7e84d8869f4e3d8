#include "hub/hub_options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

namespace linnet {
namespace {

constexpr const char* kVariables[] = {"HF_ENDPOINT", "HF_TOKEN",       "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH",
                                      "HF_HOME",     "HF_HUB_OFFLINE", "HF_HUB_CACHE",           "SSL_CERT_FILE"};

class HubOptionsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "linnet-options-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    home_ = pattern;
    for (const char* name : kVariables) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      unsetenv(name);
    }
    setenv("HF_HOME", home_.c_str(), 1);
  }
  void TearDown() override {
    std::filesystem::remove_all(home_);
    for (const char* name : kVariables) unsetenv(name);
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }
  static Result<HubOptions> read() { return hub_options_from_environment({}); }

  std::filesystem::path home_;
  std::map<std::string, std::string> before_;
};

TEST_F(HubOptionsTest, DefaultsAreThePublicHubWithoutToken) {
  const Result<HubOptions> options = read();
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->endpoint, "https://huggingface.co");
  EXPECT_EQ(options->token, "");
  EXPECT_EQ(options->cache, home_ / "hub");
}

TEST_F(HubOptionsTest, TheTokenIsWhereOtherToolsPutIt) {
  std::ofstream(home_ / "token") << "hf_saved\n";
  EXPECT_EQ(read()->token, "hf_saved");
  std::ofstream(home_ / "other") << "  hf_other  \n\n";
  setenv("HF_TOKEN_PATH", (home_ / "other").c_str(), 1);
  EXPECT_EQ(read()->token, "hf_other");
  setenv("HUGGING_FACE_HUB_TOKEN", "hf_old", 1);
  EXPECT_EQ(read()->token, "hf_old");
  setenv("HF_TOKEN", " hf_set ", 1);
  EXPECT_EQ(read()->token, "hf_set");
  setenv("HF_TOKEN", "hf_a\r\nX-Evil: 1", 1);
  ASSERT_FALSE(read().ok());
  EXPECT_EQ(read().error().message, "the token in HF_TOKEN has blanks or other characters that no token has");
}

TEST_F(HubOptionsTest, EndpointsAreChecked) {
  const struct {
    const char* value;
    const char* endpoint;  // null: refused
  } cases[] = {{"https://hf-mirror.com/", "https://hf-mirror.com"},
               {"http://127.0.0.1:8000", "http://127.0.0.1:8000"},
               {"https://host/artifactory/api/huggingfaceml/x", "https://host/artifactory/api/huggingfaceml/x"},
               {"huggingface.co", nullptr},
               {"file:///etc", nullptr},
               {"https://user@host", nullptr},
               {"https://host?x", nullptr},
               {"https://ho st", nullptr}};
  for (const auto& c : cases) {
    setenv("HF_ENDPOINT", c.value, 1);
    const Result<HubOptions> options = read();
    ASSERT_EQ(options.ok(), c.endpoint != nullptr) << c.value;
    if (c.endpoint != nullptr) {
      EXPECT_EQ(options->endpoint, c.endpoint);
    } else {
      EXPECT_EQ(options.error().param, "HF_ENDPOINT");
    }
  }
}

TEST_F(HubOptionsTest, OfflineIsRespected) {
  for (const char* value : {"1", "ON", "true", "Yes"}) {
    setenv("HF_HUB_OFFLINE", value, 1);
    EXPECT_EQ(read().error().code, ErrorCode::kUnavailable) << value;
  }
  setenv("HF_HUB_OFFLINE", "0", 1);
  EXPECT_TRUE(read().ok());
}

// A stopped wait returns: this test would take an hour otherwise.
TEST_F(HubOptionsTest, WaitingEndsWhenStopped) {
  std::stop_source stop;
  const Result<HubOptions> options = hub_options_from_environment(stop.get_token());
  stop.request_stop();
  options->wait(std::chrono::hours(1));
}

}  // namespace
}  // namespace linnet
