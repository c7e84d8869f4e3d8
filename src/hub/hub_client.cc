#include "hub/hub_client.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/check.h"
#include "linnet/version.h"

namespace linnet {
namespace {

constexpr std::uint64_t kFruitfulBytes = 1 << 20;  // an attempt that brought as much was not in vain
constexpr std::chrono::seconds kWaitFirst{1};
constexpr std::chrono::seconds kWaitMax{120};
constexpr long kConnectSeconds = 20;
constexpr long kRedirectsMax = 5;
constexpr long kBufferBytes = 512 * 1024;
constexpr long kSlowBytesPerSecond = 512;

// What libcurl's callbacks see of one transfer.
struct Transfer {
  const BodySink& sink;
  const HubOptions& options;
  FetchAttempt& attempt;
  bool begun = false;
};

std::size_t on_header(char* bytes, std::size_t, std::size_t count, void* user) {
  static_cast<Transfer*>(user)->attempt.head.add_line({bytes, count});
  return count;
}

Status begin_once(Transfer& transfer) {
  if (transfer.begun) return {};
  transfer.begun = true;
  return transfer.sink.begin(transfer.attempt.head);
}

std::size_t on_body(char* bytes, std::size_t, std::size_t count, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  const long status = transfer.attempt.head.status;
  if (status != 200 && status != 206) return count;  // the text of an error page
  Status status_of_sink = begin_once(transfer);
  if (status_of_sink.ok()) status_of_sink = transfer.sink.add({bytes, count});
  if (!status_of_sink.ok()) {
    transfer.attempt.sink_error = status_of_sink.error();
    return 0;
  }
  transfer.attempt.received += count;
  return count;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(user)->options.stop.stop_requested() ? 1 : 0;
}

template <class T>
void set(CURL* handle, CURLoption option, T value) {
  CHECK(curl_easy_setopt(handle, option, value) == CURLE_OK);
}

bool is_loopback(std::string_view endpoint) {
  for (const std::string_view host : {"http://127.0.0.1", "http://localhost", "http://[::1]"}) {
    if (endpoint.starts_with(host) &&
        (endpoint.size() == host.size() || endpoint[host.size()] == ':' || endpoint[host.size()] == '/'))
      return true;
  }
  return false;
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

std::unique_ptr<curl_slist, FreeList> headers_for(const HubOptions& options) {
  // Bytes as they are: a length and a checksum are known for them.
  std::unique_ptr<curl_slist, FreeList> list(curl_slist_append(nullptr, "Accept-Encoding: identity"));
  // Not in the clear over a network. libcurl sends a custom Authorization to the first host, port and scheme only.
  if (!options.token.empty() && (options.endpoint.starts_with("https://") || is_loopback(options.endpoint)))
    curl_slist_append(list.get(), ("Authorization: Bearer " + options.token).c_str());
  return list;
}

std::string percent_encoded(std::string_view text, std::string_view kept) {
  std::string encoded;
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : text) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (word || kept.find(c) != kept.npos) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

}  // namespace

std::string percent_encoded_path(std::string_view path) { return percent_encoded(path, "-._~/"); }
std::string percent_encoded_part(std::string_view part) { return percent_encoded(part, "-._~"); }

HubClient::HubClient(const HubOptions& options) : options_(options), handle_(curl_easy_init()) { CHECK(handle_ != nullptr); }

FetchAttempt HubClient::attempt(const std::string& path, const BodySink& sink) {
  FetchAttempt result{.reached_before = reached_};
  Transfer transfer{sink, options_, result};
  CURL* const handle = handle_.get();
  std::array<char, CURL_ERROR_SIZE> detail{};
  const auto headers = headers_for(options_);
  set(handle, CURLOPT_URL, (options_.endpoint + path).c_str());
  set(handle, CURLOPT_HTTPHEADER, headers.get());
  set(handle, CURLOPT_USERAGENT, ("linnet/" + std::string(kVersion)).c_str());
  set(handle, CURLOPT_ERRORBUFFER, detail.data());
  set(handle, CURLOPT_NOSIGNAL, 1L);
  set(handle, CURLOPT_FOLLOWLOCATION, 1L);
  set(handle, CURLOPT_MAXREDIRS, kRedirectsMax);
  set(handle, CURLOPT_PROTOCOLS_STR, options_.endpoint.starts_with("https://") ? "https" : "http,https");
  set(handle, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(handle, CURLOPT_LOW_SPEED_LIMIT, kSlowBytesPerSecond);
  set(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.stall.count()));
  set(handle, CURLOPT_BUFFERSIZE, kBufferBytes);
  if (!options_.authorities.empty()) set(handle, CURLOPT_CAINFO, options_.authorities.c_str());
  // No If-Range: the URL names a commit, whose content does not change, and those to whom the hub redirects have other etags. The
  // checksum of the whole tells.
  if (const std::uint64_t have = sink.have(); have > 0) set(handle, CURLOPT_RANGE, (std::to_string(have) + "-").c_str());
  set(handle, CURLOPT_HEADERFUNCTION, &on_header);
  set(handle, CURLOPT_HEADERDATA, &transfer);
  set(handle, CURLOPT_WRITEFUNCTION, &on_body);
  set(handle, CURLOPT_WRITEDATA, &transfer);
  set(handle, CURLOPT_NOPROGRESS, 0L);
  set(handle, CURLOPT_XFERINFOFUNCTION, &on_progress);
  set(handle, CURLOPT_XFERINFODATA, &transfer);
  result.code = curl_easy_perform(handle);
  result.detail = detail[0] != '\0' ? detail.data() : curl_easy_strerror(result.code);
  curl_easy_reset(handle);  // forgets what lies on this stack; the connection stays
  reached_ = reached_ || result.head.status != 0;
  // An empty file has no bytes to begin with.
  if (result.code == CURLE_OK && (result.head.status == 200 || result.head.status == 206)) {
    if (const Status begun = begin_once(transfer); !begun.ok()) result.sink_error = begun.error();
  }
  return result;
}

Status HubClient::fetch(const std::string& path, const FetchSubject& subject, const BodySink& sink) {
  int in_vain = 0;
  while (true) {
    const FetchAttempt last = attempt(path, sink);
    const std::optional<FetchVerdict> verdict = judge(last, subject, options_);
    if (!verdict) return {};
    in_vain = last.received >= kFruitfulBytes ? 1 : in_vain + 1;
    const std::chrono::seconds wait = verdict->after.value_or(kWaitFirst * (1 << std::min(in_vain - 1, 6)));
    if (verdict->passing.empty() || in_vain >= options_.attempts_max || wait > kWaitMax) return verdict->error;
    if (options_.say) options_.say(verdict->passing + "; trying again in " + std::to_string(wait.count()) + " s");
    if (options_.wait) options_.wait(wait);
    if (options_.stop.stop_requested()) return fetch_interrupted();
  }
}

Result<std::string> HubClient::fetch_text(const std::string& path, const FetchSubject& subject, std::size_t bytes_max) {
  std::string text;
  BodySink sink;
  sink.have = [] { return std::uint64_t{0}; };
  sink.begin = [&text](const HttpHead&) {
    text.clear();
    return Status();
  };
  sink.add = [&](std::string_view bytes) -> Status {
    if (bytes.size() > bytes_max - text.size()) {
      return Error{ErrorCode::kTooLarge,
                   "the reply of " + options_.endpoint + " for " + subject.repository + " has more than " +
                       std::to_string(bytes_max) + " bytes; is HF_ENDPOINT a Hugging Face hub?",
                   "HF_ENDPOINT"};
    }
    text += bytes;
    return {};
  };
  LINNET_RETURN_IF_ERROR(fetch(path, subject, sink));
  return text;
}

}  // namespace linnet
