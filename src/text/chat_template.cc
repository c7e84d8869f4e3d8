#include "text/chat_template.h"

#include <utility>

#include "text/rust_call.h"

namespace linnet {

class ChatTemplate::Impl {
 public:
  Impl(std::string source, rust::Box<rust_text::CompiledTemplate> compiled)
      : source_(std::move(source)), compiled_(std::move(compiled)) {}
  const std::string& source() const { return source_; }
  const rust_text::CompiledTemplate& compiled() const { return *compiled_; }

 private:
  std::string source_;
  rust::Box<rust_text::CompiledTemplate> compiled_;
};

ChatTemplate::ChatTemplate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(const ChatTemplate&) = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(const ChatTemplate&) = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::compile(std::string source) {
  if (source.size() > kSourceBytesMax) {
    return Error{.code = ErrorCode::kTooLarge,
                 .message = "the chat template has " + std::to_string(source.size()) + " bytes; at most " +
                            std::to_string(kSourceBytesMax) + " are read",
                 .param = "chat_template"};
  }
  LINNET_ASSIGN(auto compiled, rust_call([&] { return rust_text::compile_chat_template(rust_bytes(source)); }));
  return ChatTemplate(std::make_shared<const Impl>(std::move(source), std::move(compiled)));
}

Result<std::string> ChatTemplate::render(const RenderInput& input) const {
  const rust_text::RenderArguments arguments{
      .messages_json = rust_bytes(input.messages_json),
      .tools_json = rust_bytes(input.tools_json),
      .extra_json = rust_bytes(input.extra_json),
      .bos_token = rust_bytes(input.bos_token),
      .eos_token = rust_bytes(input.eos_token),
      .add_generation_prompt = input.add_generation_prompt,
      .unix_time = input.unix_time,
      .output_bytes_max = kOutputBytesMax,
  };
  LINNET_ASSIGN(const auto text, rust_call([&] { return impl_->compiled().render(arguments); }));
  return std::string(text);
}

const std::string& ChatTemplate::source() const { return impl_->source(); }

}  // namespace linnet
