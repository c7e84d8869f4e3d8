#include "hub/hub_options.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <mutex>

#include "hub/cache_folder.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

// The first of these variables that is set and not empty.
std::string first_of(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

std::string trimmed(const std::string& text) {
  constexpr const char* kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool is_on(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text == "1" || text == "on" || text == "yes" || text == "true";
}

Result<std::string> read_endpoint() {
  std::string endpoint = first_of({"HF_ENDPOINT"});
  if (endpoint.empty()) return HubOptions{}.endpoint;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const bool plain = std::all_of(endpoint.begin(), endpoint.end(), [](unsigned char c) { return c > 32 && c < 127; });
  if (plain && (endpoint.starts_with("https://") || endpoint.starts_with("http://")) &&
      endpoint.find_first_of("?#@") == endpoint.npos)
    return endpoint;
  return Error{ErrorCode::kInvalidArgument, "HF_ENDPOINT is \"" + endpoint + "\" and must be like https://huggingface.co",
               "HF_ENDPOINT"};
}

Result<std::string> read_token() {
  std::string token = trimmed(first_of({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}));
  std::string where = "HF_TOKEN";
  if (token.empty()) {
    where = first_of({"HF_TOKEN_PATH"});
    if (where.empty()) {
      const Result<fs::path> home = huggingface_home();
      if (!home.ok()) return token;
      where = (*home / "token").string();
    }
    std::ifstream file(where);
    std::getline(file, token);
    token = trimmed(token);
  }
  // It becomes part of a header.
  if (std::all_of(token.begin(), token.end(), [](unsigned char c) { return c > 32 && c < 127; })) return token;
  return Error{ErrorCode::kInvalidArgument, "the token in " + where + " has blanks or other characters that no token has", where};
}

void wait_unless_stopped(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace

Result<HubOptions> hub_options_from_environment(std::stop_token stop) {
  if (is_on(first_of({"HF_HUB_OFFLINE"}))) {
    return Error{ErrorCode::kUnavailable, "HF_HUB_OFFLINE is set, so no hub is asked; unset it to fetch models",
                 "HF_HUB_OFFLINE"};
  }
  HubOptions options;
  LINNET_ASSIGN(options.endpoint, read_endpoint());
  LINNET_ASSIGN(options.token, read_token());
  LINNET_ASSIGN(options.cache, hub_cache_folder());
  options.authorities = first_of({"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"});
  options.stop = stop;
  options.wait = [stop](std::chrono::milliseconds time) { wait_unless_stopped(stop, time); };
  return options;
}

}  // namespace linnet
