// A small hub for tests, on loopback: real sockets, and every way in which a hub or the network can fail.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace linnet {

struct HubRequest {
  std::string path;           // with query
  std::string authorization;  // "" if absent
  std::string range;
};

struct HubAnswer {
  int status = 200;
  std::vector<std::string> headers;  // "Name: value", beside Content-Length
  std::string body;
  std::size_t body_bytes_sent = SIZE_MAX;  // fewer: the connection is cut there
  bool stall = false;                      // ... or stands still there until the client leaves
  bool no_length = false;                  // ends with the connection instead of a Content-Length
};

// One connection at a time, one request each. `answer` runs on the server's own thread.
class TestServer {
 public:
  explicit TestServer(std::function<HubAnswer(const HubRequest&)> answer);
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer();

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<HubRequest> requests() const;

 private:
  void serve();
  void talk(int connection);

  std::function<HubAnswer(const HubRequest&)> answer_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;  // guards requests_
  std::vector<HubRequest> requests_;
  std::thread thread_;
};

// Serves one repository at one commit. Filled before it is asked.
class TestHub {
 public:
  static constexpr std::string_view kCommit = "0123456789abcdef0123456789abcdef01234567";

  TestHub();

  // A large file comes from another host (port), as on the real hub.
  void add(const std::string& path, const std::string& content, bool large = false);
  // What is answered to the next requests whose path contains `part`, instead of the right thing; each once.
  void fail(const std::string& part, HubAnswer answer) { faults_.emplace_back(part, std::move(answer)); }
  // What the list says of a file that is not what is served.
  void replace_content(const std::string& path, const std::string& content) { files_[path].content = content; }

  std::string url() const { return hub_.url(); }
  std::string store_url() const { return store_.url(); }
  std::vector<HubRequest> requests() const { return hub_.requests(); }
  std::vector<HubRequest> store_requests() const { return store_.requests(); }
  std::string hash(const std::string& path) const { return files_.at(path).hash; }

 private:
  struct File {
    std::string content;
    std::size_t bytes = 0;  // as listed
    std::string hash;
    bool large = false;
  };
  HubAnswer answer(const HubRequest& request);
  HubAnswer store_answer(const HubRequest& request);
  std::string listing() const;
  bool fault_for(const std::string& path, HubAnswer& fault);

  std::map<std::string, File> files_;
  std::mutex mutex_;  // guards faults_
  std::deque<std::pair<std::string, HubAnswer>> faults_;
  TestServer store_;
  TestServer hub_;
};

}  // namespace linnet
