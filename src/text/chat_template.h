// A model's chat template: a conversation to the text that the model was trained on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "linnet/status.h"

namespace linnet {

struct RenderInput {
  std::string messages_json;  // array of objects; key order is kept
  std::string tools_json;     // array; empty: the template's `tools` is none
  std::string extra_json;     // object merged into the variables, over all others; empty: none
  std::string bos_token;
  std::string eos_token;
  bool add_generation_prompt = true;
  std::int64_t unix_time = 0;  // seconds since 1970, what strftime_now() shows in local time
};

// Jinja as Hugging Face runs it (trim_blocks, lstrip_blocks, loop controls, Python methods of strings, lists and dicts, tojson,
// strftime_now, raise_exception, {% generation %} without effect). Templates are untrusted: steps, depth and output are bounded.
// Immutable; render() may be called from any thread. Copies share one template.
class ChatTemplate {
 public:
  // Errors: kCorrupt with the line and the reason; kTooLarge above kSourceBytesMax.
  static Result<ChatTemplate> compile(std::string source);

  ChatTemplate(const ChatTemplate&);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(const ChatTemplate&);
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // Errors: kInvalidArgument; after raise_exception() the message is the template's own words and nothing else.
  Result<std::string> render(const RenderInput& input) const;
  const std::string& source() const;

  static constexpr std::size_t kSourceBytesMax = std::size_t{1} << 20;
  static constexpr std::size_t kOutputBytesMax = std::size_t{64} << 20;

 private:
  class Impl;
  explicit ChatTemplate(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace linnet
