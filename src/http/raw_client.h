// A blocking byte pipe to a server on this machine: sends exactly what it is told, shows exactly what comes back.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace linnet::http {

// One thread. A failed connection or an unexpected timeout shows as empty or short results. Each read waits at most its timeout.
class RawClient {
 public:
  static constexpr std::chrono::milliseconds kPatience{10'000};

  // Connects to 127.0.0.1:port.
  explicit RawClient(std::uint16_t port);
  static RawClient to_unix_socket(const std::string& path);
  RawClient(RawClient&& other) noexcept;
  RawClient& operator=(RawClient&&) = delete;
  ~RawClient();

  bool connected() const { return socket_ >= 0; }
  int native() const { return socket_; }
  // False if the server has closed before all was sent.
  bool send(std::string_view bytes);
  // How many bytes the server took within `patience`.
  std::size_t send_within(std::string_view bytes, std::chrono::milliseconds patience);
  // What has come, up to and with the first `marker`; without it if the server closes or time is over. The rest waits for the
  // next read.
  std::string read_until(std::string_view marker, std::chrono::milliseconds patience = kPatience);
  // Head and body of one response with a Content-Length.
  std::string read_response(std::chrono::milliseconds patience = kPatience);
  // Everything until the server closes.
  std::string read_all(std::chrono::milliseconds patience = kPatience);
  bool server_closed() const { return closed_; }

  void shrink_receive_window();  // before much is received: a slow reader
  void end_sending();            // half-close
  void close();
  void reset();  // close with RST, as a killed process or a broken network would

 private:
  RawClient() = default;
  bool receive(std::chrono::steady_clock::time_point deadline);

  int socket_ = -1;
  bool closed_ = false;
  std::string received_;
};

}  // namespace linnet::http
