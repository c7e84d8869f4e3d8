// A streamed answer in the protocol that was asked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "api/anthropic_stream.h"
#include "api/openai_stream.h"
#include "api/responses_stream.h"

namespace linnet {

// Order of calls: begin, then deltas, keep_alive and a finish for each choice, or fail. take() hands out what came together since
// the last one.
class StreamEncoder {
 public:
  using Protocol = std::variant<api::OpenAiStream, api::AnthropicStream, api::ResponsesStream>;
  explicit StreamEncoder(Protocol protocol) : protocol_(std::move(protocol)) {}

  void begin() {
    std::visit([](auto& stream) { stream.begin(); }, protocol_);
  }
  // Only OpenAI's protocols have several choices.
  void delta(std::int32_t choice, const TextDelta& delta) {
    if (auto* openai = std::get_if<api::OpenAiStream>(&protocol_)) {
      openai->delta(choice, delta);
    } else if (auto* anthropic = std::get_if<api::AnthropicStream>(&protocol_)) {
      anthropic->delta(delta);
    } else {
      std::get<api::ResponsesStream>(protocol_).delta(delta);
    }
  }
  void finish(std::int32_t choice, const FinishEvent& finish) {
    if (auto* openai = std::get_if<api::OpenAiStream>(&protocol_)) {
      openai->finish(choice, finish);
    } else if (auto* anthropic = std::get_if<api::AnthropicStream>(&protocol_)) {
      anthropic->finish(finish);
    } else {
      std::get<api::ResponsesStream>(protocol_).finish(finish);
    }
  }
  void fail(const Error& error) {
    std::visit([&](auto& stream) { stream.fail(error); }, protocol_);
  }
  // A comment, which every client skips, and the protocol's own sign of life.
  void keep_alive(std::string_view comment) {
    comments_.append(": ").append(comment).append("\n\n");
    if (auto* anthropic = std::get_if<api::AnthropicStream>(&protocol_)) anthropic->ping();
  }

  // After finish(): what /v1/responses keeps; null for other protocols.
  const api::EncodedResponse* response() const {
    const auto* responses = std::get_if<api::ResponsesStream>(&protocol_);
    return responses == nullptr ? nullptr : &responses->response();
  }

  bool empty() const {
    return comments_.empty() && std::visit([](const auto& stream) { return stream.empty(); }, protocol_);
  }
  std::string take() {
    return std::visit([](auto& stream) { return stream.take(); }, protocol_) + std::exchange(comments_, {});
  }

 private:
  Protocol protocol_;
  std::string comments_;
};

}  // namespace linnet
