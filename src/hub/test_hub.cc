#include "hub/test_hub.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "hub/checksum.h"

namespace linnet {
namespace {

void send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;  // the client has left
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string header_of(const std::string& head, const std::string& name) {
  const std::size_t at = head.find("\r\n" + name + ": ");
  if (at == head.npos) return {};
  const std::size_t begin = at + name.size() + 4;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

// The part of `content` that "bytes=N-" asks for.
HubAnswer content_answer(const std::string& content, const std::string& range) {
  HubAnswer answer{.body = content};
  if (range.empty()) return answer;
  const std::size_t first = std::stoul(range.substr(range.find('=') + 1));
  answer.status = 206;
  answer.headers.push_back("Content-Range: bytes " + std::to_string(first) + "-" + std::to_string(content.size() - 1) + "/" +
                           std::to_string(content.size()));
  answer.body = content.substr(first);
  return answer;
}

}  // namespace

TestServer::TestServer(std::function<HubAnswer(const HubRequest&)> answer) : answer_(std::move(answer)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  CHECK(listener_ >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(listener_, 16) == 0);
  CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

TestServer::~TestServer() {
  ::shutdown(listener_, SHUT_RDWR);  // wakes accept
  thread_.join();
  ::close(listener_);
}

std::vector<HubRequest> TestServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void TestServer::serve() {
  for (int connection = 0; (connection = ::accept(listener_, nullptr, nullptr)) >= 0; ::close(connection)) talk(connection);
}

void TestServer::talk(int connection) {
  std::string head;
  char byte = 0;
  while (!head.ends_with("\r\n\r\n")) {
    if (::recv(connection, &byte, 1, 0) <= 0) return;
    head += byte;
  }
  const std::size_t begin = head.find(' ') + 1;
  HubRequest request{head.substr(begin, head.find(' ', begin) - begin), header_of(head, "Authorization"),
                     header_of(head, "Range")};
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
  }
  const HubAnswer answer = answer_(request);
  std::string reply = "HTTP/1.1 " + std::to_string(answer.status) + " x\r\nConnection: close\r\n";
  if (!answer.no_length) reply += "Content-Length: " + std::to_string(answer.body.size()) + "\r\n";
  for (const std::string& header : answer.headers) reply += header + "\r\n";
  send_all(connection, reply + "\r\n");
  send_all(connection, std::string_view(answer.body).substr(0, answer.body_bytes_sent));
  if (answer.stall) {
    while (::recv(connection, &byte, 1, 0) > 0) continue;
  }
}

TestHub::TestHub()
    : store_([this](const HubRequest& request) { return store_answer(request); }),
      hub_([this](const HubRequest& request) { return answer(request); }) {}

void TestHub::add(const std::string& path, const std::string& content, bool large) {
  Checksum checksum = large ? Checksum::sha256() : Checksum::git_blob(content.size());
  checksum.add(content);
  files_[path] = {content, content.size(), checksum.finish(), large};
}

bool TestHub::fault_for(const std::string& path, HubAnswer& fault) {
  const std::lock_guard lock(mutex_);
  const auto it =
      std::find_if(faults_.begin(), faults_.end(), [&path](const auto& f) { return path.find(f.first) != path.npos; });
  if (it == faults_.end()) return false;
  fault = it->second;
  faults_.erase(it);
  return true;
}

std::string TestHub::listing() const {
  nlohmann::json siblings = nlohmann::json::array();
  for (const auto& [path, file] : files_) {
    nlohmann::json entry = {{"rfilename", path}, {"size", file.bytes}, {"blobId", file.large ? std::string(40, '0') : file.hash}};
    if (file.large) entry["lfs"] = {{"sha256", file.hash}, {"size", file.bytes}, {"pointerSize", 134}};
    siblings.push_back(entry);
  }
  return nlohmann::json{{"id", "org/name"}, {"sha", kCommit}, {"siblings", siblings}}.dump();
}

HubAnswer TestHub::answer(const HubRequest& request) {
  HubAnswer fault;
  if (fault_for(request.path, fault)) return fault;
  if (request.path == "/api/models/org/name/revision/main?blobs=true") return {.body = listing()};
  const std::string resolve = "/org/name/resolve/" + std::string(kCommit) + "/";
  if (!request.path.starts_with(resolve)) return {.status = 404};
  const std::string path = request.path.substr(resolve.size());
  const auto file = files_.find(path);
  if (file == files_.end()) return {.status = 404, .headers = {"X-Error-Code: EntryNotFound"}};
  if (file->second.large) {
    return {.status = 302,
            .headers = {"Location: " + store_.url() + "/" + path, "X-Linked-Etag: \"" + file->second.hash + "\"",
                        "ETag: \"of-the-redirect\""}};
  }
  HubAnswer answer = content_answer(file->second.content, request.range);
  answer.headers.push_back("ETag: \"" + file->second.hash + "\"");
  return answer;
}

HubAnswer TestHub::store_answer(const HubRequest& request) {
  HubAnswer fault;
  if (fault_for("store" + request.path, fault)) return fault;
  const auto file = files_.find(request.path.substr(1));
  if (file == files_.end()) return {.status = 404};
  HubAnswer answer = content_answer(file->second.content, request.range);
  answer.headers.push_back("ETag: \"" + std::string(64, 'e') + "\"");  // of its own making
  return answer;
}

}  // namespace linnet
