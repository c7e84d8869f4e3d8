// Streams chat completions from an OpenAI-compatible server on this machine and prints what clients saw, as JSON. One thread,
// plain sockets, no parsing of JSON: it takes little of the cores that it measures.
//   serve_load PORT --streams 8 --tokens 64         so many at once, then the next row
//   serve_load PORT --rate 4 --seconds 20           open loop: arrivals at random times, whether or not earlier ones are done
//   serve_load PORT --long-prompt 6000              a long prompt beside a running stream
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace linnet {
namespace {

constexpr std::string_view kSentence = "Tell me a long story about the sea. ";  // about 9 tokens
constexpr double kPatienceS = 300;

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "serve_load: %s\n", message.c_str());
  std::exit(1);
}

double now_s() { return std::chrono::duration<double>(SystemClock().now()).count(); }

// Of this run alone.
int first_tag() { return 10'000 * (1 + getpid() % 90'000); }

struct Ask {
  double at_s = 0;  // when it is sent
  int tag = 0;      // makes prompts differ from their first words on, so that no cache knows them
  int sentences = 7;
  int tokens = 64;
};

// One streamed answer on a connection of its own.
class Stream {
 public:
  Stream(int port, const Ask& ask) : ask_(ask) {
    socket_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail(std::strerror(errno));
    send_request();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { close(socket_); }

  int socket_number() const { return socket_; }
  bool done() const { return done_; }
  double begin_s() const { return begin_s_; }
  double end_s() const { return times_.empty() ? begin_s_ : times_.back(); }
  double ttft_s() const { return times_.empty() ? 0 : times_.front() - begin_s_; }
  int tokens() const { return tokens_; }
  const std::vector<double>& times() const { return times_; }

  void read_more() {
    char bytes[16384];
    const ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
    if (count <= 0) fail("the connection ended before the answer did: " + text_.substr(0, 300));
    text_.append(bytes, static_cast<std::size_t>(count));
    const double now = now_s();
    for (std::size_t end = 0; (end = text_.find("\n\n")) != std::string::npos;) {
      take_event(std::string_view(text_).substr(0, end), now);
      text_.erase(0, end + 2);
    }
    if (times_.empty() && text_.starts_with("HTTP/1.1 ") && !text_.starts_with("HTTP/1.1 200")) fail(text_.substr(0, 500));
  }

 private:
  void send_request() {
    std::string prompt = std::to_string(ask_.tag) + " ";
    for (int i = 0; i < ask_.sentences; ++i) prompt += kSentence;
    const std::string body =
        R"({"model":"demo","temperature":0,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true,)"
        R"("max_tokens":)" +
        std::to_string(ask_.tokens) + R"(,"messages":[{"role":"user","content":")" + prompt + "\"}]}";
    const std::string request =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body;
    begin_s_ = now_s();
    for (std::size_t sent = 0; sent < request.size();) {
      const ssize_t count = send(socket_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) fail(std::strerror(errno));
      sent += static_cast<std::size_t>(count);
    }
  }

  void take_event(std::string_view event, double now) {
    if (event.find("data: [DONE]") != std::string_view::npos) done_ = true;
    if (const std::size_t at = event.find("\"completion_tokens\":"); at != std::string_view::npos) {
      tokens_ = std::atoi(event.data() + at + 20);
    }
    const std::size_t content = event.find("\"content\":\"");
    if (content != std::string_view::npos && event[content + 11] != '"') times_.push_back(now);
  }

  Ask ask_;
  int socket_ = -1;
  std::string text_;  // what has come and was not looked at
  bool done_ = false;
  double begin_s_ = 0;
  int tokens_ = 0;
  std::vector<double> times_;  // of events with text
};

// Sends each at its time and reads all to their ends.
std::vector<std::unique_ptr<Stream>> play(int port, std::vector<Ask> asks) {
  std::sort(asks.begin(), asks.end(), [](const Ask& a, const Ask& b) { return a.at_s < b.at_s; });
  std::vector<std::unique_ptr<Stream>> streams;
  const double begin = now_s();
  std::size_t open = 0;
  for (std::size_t next = 0; next < asks.size() || open > 0;) {
    const double elapsed = now_s() - begin;
    if (elapsed > kPatienceS) fail("the server took too long");
    if (next < asks.size() && asks[next].at_s <= elapsed) {
      streams.push_back(std::make_unique<Stream>(port, asks[next++]));
      ++open;
      continue;
    }
    std::vector<pollfd> waiting;
    std::vector<Stream*> owners;
    for (const auto& stream : streams) {
      if (stream->done()) continue;
      waiting.push_back({.fd = stream->socket_number(), .events = POLLIN, .revents = 0});
      owners.push_back(stream.get());
    }
    const double patience = next < asks.size() ? asks[next].at_s - elapsed : 1.0;
    poll(waiting.data(), waiting.size(), static_cast<int>(std::ceil(std::max(patience, 0.0) * 1000)));
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents == 0) continue;
      owners[i]->read_more();
      if (owners[i]->done()) --open;
    }
  }
  return streams;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(q * static_cast<double>(values.size())))];
}

std::vector<double> gaps_of(const Stream& stream) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < stream.times().size(); ++i) gaps.push_back(stream.times()[i] - stream.times()[i - 1]);
  return gaps;
}

void print_streams(const std::vector<std::unique_ptr<Stream>>& streams) {
  double begin = streams.front()->begin_s();
  double end = begin;
  int tokens = 0;
  std::vector<double> ttfts;
  std::vector<double> gaps;
  for (const auto& stream : streams) {
    begin = std::min(begin, stream->begin_s());
    end = std::max(end, stream->end_s());
    tokens += stream->tokens();
    ttfts.push_back(stream->ttft_s());
    const std::vector<double> own = gaps_of(*stream);
    gaps.insert(gaps.end(), own.begin(), own.end());
  }
  std::printf(
      "{\"streams\":%zu,\"tokens\":%d,\"tok_s\":%.1f,\"ttft_ms\":{\"p50\":%.1f,\"p99\":%.1f},\"gap_ms\":{\"p50\":%.2f,\"p99\":%."
      "2f,"
      "\"max\":%.2f}}\n",
      streams.size(), tokens, tokens / (end - begin), quantile(ttfts, 0.5) * 1e3, quantile(ttfts, 0.99) * 1e3,
      quantile(gaps, 0.5) * 1e3, quantile(gaps, 0.99) * 1e3, quantile(gaps, 1) * 1e3);
}

struct Flags {
  int port = 0;
  int streams = 0;
  int tokens = 64;
  double rate = 0;
  double seconds = 10;
  int long_prompt = 0;  // tokens, about
};

Flags parse(int argc, char** argv) {
  Flags flags;
  if (argc < 2) fail("usage: serve_load PORT (--streams N | --rate R [--seconds S] | --long-prompt TOKENS) [--tokens N]");
  flags.port = std::atoi(argv[1]);
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const double value = std::atof(argv[i + 1]);
    if (name == "--streams")
      flags.streams = static_cast<int>(value);
    else if (name == "--tokens")
      flags.tokens = static_cast<int>(value);
    else if (name == "--rate")
      flags.rate = value;
    else if (name == "--seconds")
      flags.seconds = value;
    else if (name == "--long-prompt")
      flags.long_prompt = static_cast<int>(value);
    else
      fail("unknown flag " + std::string(name));
  }
  return flags;
}

void run_long_prompt(const Flags& flags) {
  const auto streams = play(flags.port, {{.tag = first_tag(), .tokens = 400},
                                         {.at_s = 0.5, .tag = first_tag() + 1, .sentences = flags.long_prompt / 9, .tokens = 4}});
  std::vector<double> gaps = gaps_of(*streams[0]);
  std::printf("{\"long_prompt\":%d,\"ttft_ms\":%.1f,\"other_gap_ms\":{\"p50\":%.2f,\"max\":%.2f}}\n", flags.long_prompt,
              streams[1]->ttft_s() * 1e3, quantile(gaps, 0.5) * 1e3, quantile(gaps, 1) * 1e3);
}

void run_open_loop(const Flags& flags) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> gap(flags.rate);
  std::vector<Ask> asks;
  for (double at = gap(random); at < flags.seconds; at += gap(random)) {
    asks.push_back({.at_s = at, .tag = first_tag() + static_cast<int>(asks.size()), .tokens = flags.tokens});
  }
  if (asks.empty()) fail("no arrival in that time; raise --rate or --seconds");
  print_streams(play(flags.port, std::move(asks)));
}

void run_streams(const Flags& flags) {
  std::vector<Ask> asks;
  for (int i = 0; i < std::max(flags.streams, 1); ++i) {
    asks.push_back({.tag = first_tag() + i, .tokens = flags.tokens});
  }
  print_streams(play(flags.port, std::move(asks)));
}

}  // namespace
}  // namespace linnet

int main(int argc, char** argv) {
  const linnet::Flags flags = linnet::parse(argc, argv);
  if (flags.long_prompt > 0) {
    linnet::run_long_prompt(flags);
  } else if (flags.rate > 0) {
    linnet::run_open_loop(flags);
  } else {
    linnet::run_streams(flags);
  }
}
