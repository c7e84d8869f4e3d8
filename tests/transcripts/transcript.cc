#include "transcript.h"

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

namespace linnet {
namespace {

Error bad_line(const std::string& line) { return {ErrorCode::kInvalidArgument, "not understood: " + line, {}}; }

std::optional<ErrorCode> error_code(const std::string& name) {
  static const std::map<std::string, ErrorCode> kCodes = {
      {"invalid_argument", ErrorCode::kInvalidArgument},
      {"context_length_exceeded", ErrorCode::kContextLengthExceeded},
      {"queue_full", ErrorCode::kQueueFull},
      {"unavailable", ErrorCode::kUnavailable},
      {"internal", ErrorCode::kInternal},
  };
  const auto found = kCodes.find(name);
  if (found == kCodes.end()) return std::nullopt;
  return found->second;
}

// "queue_full come back": code and message.
std::optional<Error> read_error(std::istringstream& words) {
  std::string name;
  std::string message;
  words >> name;
  std::getline(words >> std::ws, message);
  const std::optional<ErrorCode> code = error_code(name);
  if (!code) return std::nullopt;
  return Error{*code, message, {}};
}

std::optional<FinishEvent> read_finish(std::istringstream& words) {
  std::string reason;
  FinishEvent finish;
  words >> reason >> finish.usage.prompt_tokens >> finish.usage.cached_tokens >> finish.usage.completion_tokens;
  if (!words || (reason != "stop" && reason != "length")) return std::nullopt;
  std::string stop;
  std::getline(words >> std::ws, stop);
  if (!stop.empty()) finish.stop_string = nlohmann::json::parse(stop, nullptr, false).get<std::string>();
  finish.reason = reason == "stop" ? FinishReason::kStop : FinishReason::kLength;
  return finish;
}

Status read_directive(const std::string& line, Transcript& transcript) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  if (word.empty() || word.front() == '#') return {};
  if (word == "strict") {
    transcript.strict = true;
    return {};
  }
  if (word == "reasons") {
    transcript.reasons = true;
    return {};
  }
  if (word == "delta" || word == "reasoning") {
    const auto text = nlohmann::json::parse(line.substr(line.find(word) + word.size()), nullptr, false);
    if (!text.is_string()) return bad_line(line);
    const TextChannel channel = word == "delta" ? TextChannel::kContent : TextChannel::kReasoning;
    transcript.script.push_back(TextDelta{text.get<std::string>(), channel});
    return {};
  }
  if (word == "finish") {
    const auto finish = read_finish(words);
    if (!finish) return bad_line(line);
    transcript.script.push_back(*finish);
    return {};
  }
  const auto error = word == "fail" || word == "refuse" ? read_error(words) : std::nullopt;
  if (!error) return bad_line(line);
  if (word == "refuse") {
    transcript.refusal = error;
  } else {
    transcript.script.push_back(FinishEvent{.reason = FinishReason::kError, .usage = {}, .error = error});
  }
  return {};
}

std::string to_bytes(std::string_view block) {
  std::string bytes;
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (block.substr(i, 3) == "\\r\n" || block.substr(i) == "\\r") {
      bytes += '\r';
      ++i;
    } else if (block.substr(i, 2) == "\\x" && i + 3 < block.size()) {
      bytes += static_cast<char>(std::stoi(std::string(block.substr(i + 2, 2)), nullptr, 16));
      i += 3;
    } else {
      bytes += block[i];
    }
  }
  return bytes;
}

void fill_in_length(std::string& request) {
  constexpr std::string_view kMark = "{length}";
  const std::size_t mark = request.find(kMark);
  const std::size_t body = request.find("\r\n\r\n");
  if (mark == std::string::npos || body == std::string::npos) return;
  request.replace(mark, kMark.size(), std::to_string(request.size() - body - 4));
}

}  // namespace

Result<Transcript> parse_transcript(std::string_view text) {
  Transcript transcript;
  const std::size_t first = text.find("<<<\n");
  if (first == std::string_view::npos) return bad_line("no <<< in the file");
  transcript.preamble = text.substr(0, first);
  std::istringstream lines(transcript.preamble);
  for (std::string line; std::getline(lines, line);) LINNET_RETURN_IF_ERROR(read_directive(line, transcript));
  for (std::size_t at = first; at != std::string_view::npos;) {
    const std::size_t reply = text.find("\n>>>\n", at);
    if (reply == std::string_view::npos) return bad_line("a <<< without >>>");
    const std::size_t next = text.find("\n<<<\n", reply + 4);
    std::string_view reply_block = text.substr(reply + 5, next == std::string_view::npos ? next : next - reply - 5);
    if (next == std::string_view::npos && reply_block.ends_with('\n')) reply_block.remove_suffix(1);
    Exchange exchange{.request = to_bytes(text.substr(at + 4, reply - at - 4)), .reply = to_bytes(reply_block)};
    fill_in_length(exchange.request);
    transcript.exchanges.push_back(std::move(exchange));
    at = next == std::string_view::npos ? next : next + 1;
  }
  return transcript;
}

std::string to_block(std::string_view bytes) {
  std::string block;
  for (const char c : bytes) c == '\r' ? block += "\\r" : block += c;
  return block;
}

}  // namespace linnet
