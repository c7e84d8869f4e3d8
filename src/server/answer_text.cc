#include "server/answer_text.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "api/anthropic_request.h"
#include "api/anthropic_stream.h"
#include "api/errors.h"
#include "api/openai_chat.h"
#include "api/openai_completions.h"
#include "api/prompt_tools.h"
#include "api/reasoning_fields.h"
#include "api/responses_request.h"
#include "api/responses_stream.h"
#include "base/log.h"
#include "base/printable.h"
#include "server/model_wait.h"

namespace linnet {
namespace {

using http::EventSignal;
using http::Header;

using http::Response;
using http::ResponseWriter;
using http::Task;
using http::Wake;

// JSON under its own names, and what HTTP libraries say of a body when nobody told them.
constexpr std::array<std::string_view, 5> kBodyTypes = {"", "application/json", "text/json", "text/plain",
                                                        "application/x-www-form-urlencoded"};

constexpr std::size_t kIgnoredShownMax = 20;
constexpr std::size_t kTraceIdBytesMax = 128;
constexpr std::size_t kAsideBytesMin = 32 * 1024;  // bodies from here on: a millisecond or more of work

std::optional<Error> check_body_type(const http::Request& request) {
  const std::string type = request.media_type();
  if (std::find(kBodyTypes.begin(), kBodyTypes.end(), type) != kBodyTypes.end() || type.ends_with("+json")) return std::nullopt;
  return Error{ErrorCode::kUnsupported, "the body must be JSON: send Content-Type: application/json", "content-type"};
}

std::string header_list(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < kIgnoredShownMax; ++i) {
    if (i > 0) list += ", ";
    list += printable(names[i]);
  }
  if (names.size() > kIgnoredShownMax) list += ", ...";
  return list;
}

Task<> send_error(ResponseWriter& writer, const Error& error, api::ErrorShape shape) {
  Response response = error_response(error, shape);
  co_await writer.send(std::move(response));
}

// A body that was understood, and who answers it.
struct Understood {
  api::ParsedRequest parsed;
  ModelLease engine;
  api::ReplyOptions reply;
};

std::function<Result<api::StoredItems>(const std::string&)> stored_items(ResponseStore& store, const std::string& owner) {
  return [&store, owner](const std::string& id) -> Result<api::StoredItems> {
    LINNET_ASSIGN(auto found, store.get(id, owner));
    if (found) return api::StoredItems{.items = std::move(found->items), .output = std::move(found->output)};
    return Error{ErrorCode::kNotFound, "there is no response \"" + printable(id) + "\" here", "previous_response_id"};
  };
}

// A request on its way to a model.
struct Arrival {
  const RouteContext& context;
  api::ErrorShape errors;
  Result<api::ParsedRequest> (*parse)(std::string_view body, const api::ParseOptions& options);
  http::Request& request;
  ResponseWriter& writer;
  std::optional<std::size_t> missing{};  // the model that it needs and that is not loaded
};

// With Arrival::missing set an error that nobody sees.
Result<Understood> understand(Arrival& arrival) {
  api::ParseOptions options{.strict = arrival.context.strict};
  if (arrival.context.responses != nullptr) options.stored = stored_items(*arrival.context.responses, arrival.request.owner);
  LINNET_ASSIGN(api::ParsedRequest parsed, arrival.parse(arrival.request.body, options));
  LINNET_ASSIGN(const std::size_t model, arrival.context.models->model_for(parsed.model));
  std::optional<ModelLease> engine = arrival.context.models->acquire(model);
  if (!engine) {
    arrival.missing = model;
    return Error{ErrorCode::kUnavailable, "the model is not loaded", "model"};
  }
  LINNET_RETURN_IF_ERROR(api::apply_reasoning((*engine)->model(), parsed));
  LINNET_RETURN_IF_ERROR(api::apply_template_defaults(arrival.context.template_args, parsed));
  const api::ReplyOptions reply = api::reply_options_of(parsed);
  return Understood{std::move(parsed), *std::move(engine), reply};
}

// `work` here if the body is small, aside if it is large.
Task<> run_by_size(const http::Request& request, ResponseWriter& writer, std::function<void()> work) {
  if (request.body.size() < kAsideBytesMin) {
    work();
  } else {
    co_await writer.run_aside(std::move(work));
  }
}

// An answer that did not come to its own end.
std::optional<Error> failure_of(const FinishEvent& finish) {
  if (finish.error) return finish.error;
  if (finish.reason == FinishReason::kCancelled) return Error{ErrorCode::kUnavailable, "the server cancelled this request", {}};
  return std::nullopt;
}

// Has `work` done with the body, which is then dropped; what went wrong has been answered. If it misses a model, that is loaded
// and the work done anew.
Task<Status> accept(Arrival& arrival, std::function<Status()> work) {
  const std::optional<Error> wrong_type = check_body_type(arrival.request);
  if (wrong_type) {
    Response response = error_response(*wrong_type, arrival.errors);
    response.status = 415;
    co_await arrival.writer.send(std::move(response));
    co_return Status(*wrong_type);
  }
  Status status;
  for (;;) {
    arrival.missing.reset();
    std::function<void()> run = [&] { status = work(); };
    co_await run_by_size(arrival.request, arrival.writer, std::move(run));
    if (!arrival.missing) break;
    status = co_await await_model_change(*arrival.context.loader, *arrival.missing, ModelChange::kLoad, arrival.writer);
    if (!status.ok()) break;
  }
  arrival.request.drop_body();
  if (!status.ok()) {
    const Error error = status.error();
    co_await send_error(arrival.writer, error, arrival.errors);
  }
  co_return status;
}

// The answers to one request under way. Dropping them cancels it.
class Answer {
 public:
  Answer(const RouteContext& context, const TextProtocol& protocol, const http::Request& request, ResponseWriter& writer,
         std::vector<TextStream> streams, const Understood& understood)
      : context_(context),
        protocol_(protocol),
        request_(request),
        writer_(writer),
        streams_(std::move(streams)),
        finishes_(streams_.size()),
        parsed_(understood.parsed),
        reply_(understood.reply),
        signal_(writer.make_signal()) {
    head_ = {.id = std::string(protocol.id_prefix) + context.ids->next(),
             .created = context.clock->unix_time().count(),
             .model = understood.engine->model().id};
    if (!parsed_.ignored.empty()) headers_.push_back({"x-linnet-ignored", header_list(parsed_.ignored)});
    for (TextStream& stream : streams_) stream.on_ready(signal_.notifier());
  }

  Task<> send_whole() {
    std::vector<TextAnswer> answers(streams_.size());
    for (;;) {
      collect_ready(answers);
      if (all_finished() || failure()) {
        if (parsed_.responses && !failure()) {
          api::EncodedResponse response = api::encode_response(head_, parsed_.responses->echo, answers.front());
          co_await keep(response);
        }
        Response response = whole_reply(answers);
        co_await writer_.send(std::move(response));
        co_return;
      }
      const Wake wake = co_await signal_.wait();
      if (wake == Wake::kGone) {
        log_departure();
        co_return;
      }
    }
  }

  // The first events decide on the status: an answer that fails before any text is an HTTP error, not a broken stream.
  Task<> send_stream() {
    StreamEncoder encoder = protocol_.stream(head_, parsed_, reply_, streams_.front().prompt_tokens());
    for (;;) {
      encode_ready(encoder);
      const std::optional<Error> failed = failure();
      if (failed && !writer_.started() && encoder.empty()) {
        co_await send_error(writer_, *failed, protocol_.errors);
        co_return;
      }
      if (failed) {
        log_warning("request " + request_.id + " failed: " + failed->message);
        encoder.fail(*failed);
      }
      if (all_finished() && !failed && parsed_.responses) co_await keep(*encoder.response());
      const bool sent = co_await flush(encoder);
      if (sent && (failed || all_finished())) co_return;
      Wake wake = Wake::kGone;
      if (sent) wake = co_await signal_.wait(context_.keep_alive);
      if (wake == Wake::kGone) {
        log_departure();
        co_return;
      }
      if (wake == Wake::kTimeout) encode_keep_alive(encoder);
    }
  }

 private:
  bool all_finished() const {
    return std::all_of(finishes_.begin(), finishes_.end(), [](const auto& finish) { return finish.has_value(); });
  }
  // One answer that fails ends all of them.
  std::optional<Error> failure() const {
    for (const std::optional<FinishEvent>& finish : finishes_) {
      if (finish && failure_of(*finish)) return failure_of(*finish);
    }
    return std::nullopt;
  }

  // Hands what is there now to `delta(choice, TextDelta)` and `finish(choice, FinishEvent)`, a failure to neither.
  template <class OnDelta, class OnFinish>
  void read_ready(const OnDelta& on_delta, const OnFinish& on_finish) {
    for (std::size_t choice = 0; choice < streams_.size(); ++choice) {
      while (std::optional<TextEvent> event = streams_[choice].try_next()) {
        if (auto* delta = std::get_if<TextDelta>(&*event)) {
          on_delta(choice, std::move(*delta));
          continue;
        }
        finishes_[choice] = std::get<FinishEvent>(*std::move(event));
        if (!failure_of(*finishes_[choice])) on_finish(choice, *finishes_[choice]);
      }
    }
  }

  void encode_ready(StreamEncoder& encoder) {
    read_ready(
        [&](std::size_t choice, const TextDelta& delta) {
          begin_once(encoder);
          text_begun_ = true;
          encoder.delta(static_cast<std::int32_t>(choice), delta);
        },
        [&](std::size_t choice, const FinishEvent& finish) {
          begin_once(encoder);
          encoder.finish(static_cast<std::int32_t>(choice), finish);
          log_finish(finish);
        });
  }

  // Before the client knows that the response is complete: its next request may go on from it.
  Task<> keep(const api::EncodedResponse& encoded) {
    if (!parsed_.responses->store) co_return;
    StoredResponse response{.id = head_.id,
                            .owner = request_.owner,
                            .response = encoded.response,
                            .items = parsed_.responses->items,
                            .output = encoded.output};
    Status status;
    std::function<void()> put = [&] { status = context_.responses->put(response); };
    co_await writer_.run_aside(std::move(put));
    if (!status.ok()) log_error("request " + request_.id + ": its response is not kept: " + status.error().message);
  }

  // Before the first text it says what is waited for.
  void encode_keep_alive(StreamEncoder& encoder) {
    waited_ += std::chrono::duration_cast<std::chrono::seconds>(context_.keep_alive);
    std::string comment = "keep-alive, " + std::to_string(waited_.count()) + " s";
    if (!text_begun_) comment += ", prompt of " + std::to_string(streams_.front().prompt_tokens()) + " tokens";
    begin_once(encoder);
    encoder.keep_alive(comment);
  }

  void begin_once(StreamEncoder& encoder) {
    if (!std::exchange(begun_, true)) encoder.begin();
  }

  Task<bool> flush(StreamEncoder& encoder) {
    if (encoder.empty()) co_return true;
    if (!writer_.started()) co_await writer_.start_event_stream(std::move(headers_));
    std::string events = encoder.take();
    const bool sent = co_await writer_.write_event(std::move(events));
    co_return sent;
  }

  void collect_ready(std::vector<TextAnswer>& answers) {
    read_ready(
        [&](std::size_t choice, TextDelta delta) {
          TextAnswer& answer = answers[choice];
          (delta.channel == TextChannel::kReasoning ? answer.reasoning : answer.content) += delta.text;
          std::move(delta.logprobs.begin(), delta.logprobs.end(), std::back_inserter(answer.logprobs));
        },
        [&](std::size_t choice, const FinishEvent& finish) {
          answers[choice].finish = finish;
          log_finish(finish);
        });
  }

  Response whole_reply(const std::vector<TextAnswer>& answers) {
    if (const std::optional<Error> failed = failure()) return error_response(*failed, protocol_.errors);
    return {.content_type = "application/json",
            .body = protocol_.encode(head_, parsed_, reply_, answers),
            .headers = std::move(headers_)};
  }

  void log_finish(const FinishEvent& finish) {
    const Usage& usage = finish.usage;
    log_info("request " + request_.id + " " + request_.path + ": " + std::to_string(usage.prompt_tokens) + " + " +
             std::to_string(usage.completion_tokens) + " tokens, " + (finish.reason == FinishReason::kStop ? "stop" : "length"));
  }

  void log_departure() { log_info("request " + request_.id + " is cancelled: its client left"); }

  const RouteContext& context_;
  const TextProtocol& protocol_;
  const http::Request& request_;
  ResponseWriter& writer_;
  std::vector<TextStream> streams_;
  std::vector<std::optional<FinishEvent>> finishes_;  // of streams_
  const api::ParsedRequest& parsed_;
  const api::ReplyOptions reply_;
  EventSignal signal_;
  api::ReplyHead head_;
  std::vector<Header> headers_;
  bool begun_ = false;       // the encoder has the opening
  bool text_begun_ = false;  // and some text
  std::chrono::seconds waited_{0};
};

}  // namespace

Response error_response(const Error& error, api::ErrorShape shape) {
  Response response{
      .status = api::http_status(error.code), .content_type = "application/json", .body = api::encode_error(error, shape)};
  if (const std::optional<int> seconds = api::retry_after_s(error.code)) {
    response.headers.push_back({"retry-after", std::to_string(*seconds)});
  }
  return response;
}

using Head = const api::ReplyHead&;
using Parsed = const api::ParsedRequest&;
using Options = const api::ReplyOptions&;
using Answers = std::span<const TextAnswer>;

const TextProtocol kChatProtocol = {
    .id_prefix = "chatcmpl-",
    .errors = api::ErrorShape::kOpenAi,
    .parse = api::parse_chat,
    .encode = [](Head head, Parsed, Options options, Answers answers) { return api::encode_chat_reply(head, options, answers); },
    .stream = [](Head head, Parsed, Options options, std::int32_t) { return StreamEncoder(api::chat_stream(head, options)); }};

const TextProtocol kCompletionProtocol = {
    .id_prefix = "cmpl-",
    .errors = api::ErrorShape::kOpenAi,
    .parse = api::parse_completion,
    .encode = [](Head head, Parsed, Options options,
                 Answers answers) { return api::encode_completion_reply(head, options, answers); },
    .stream = [](Head head, Parsed, Options options,
                 std::int32_t) { return StreamEncoder(api::completion_stream(head, options)); }};

const TextProtocol kAnthropicProtocol = {
    .id_prefix = "msg_",
    .errors = api::ErrorShape::kAnthropic,
    .parse = api::parse_anthropic,
    .encode = [](Head head, Parsed, Options, Answers answers) { return api::encode_anthropic_reply(head, answers.front()); },
    .stream = [](Head head, Parsed, Options,
                 std::int32_t prompt_tokens) { return StreamEncoder(api::AnthropicStream(head, prompt_tokens)); }};

const TextProtocol kResponsesProtocol = {
    .id_prefix = "resp_",
    .errors = api::ErrorShape::kOpenAi,
    .parse = api::parse_responses,
    .encode = [](Head head, Parsed parsed, Options,
                 Answers answers) { return api::encode_response(head, parsed.responses->echo, answers.front()).response; },
    .stream = [](Head head, Parsed parsed, Options,
                 std::int32_t) { return StreamEncoder(api::ResponsesStream(head, parsed.responses->echo)); }};

const PromptQuestion kCountTokens = {.errors = api::ErrorShape::kAnthropic,
                                     .parse = api::parse_anthropic,
                                     .answer = [](const TextEngine& engine, const TextPrompt& prompt) -> Result<std::string> {
                                       LINNET_ASSIGN(const auto tokens, engine.prompt_tokens(prompt));
                                       return api::encode_token_count(static_cast<std::int32_t>(tokens.size()));
                                     }};

const PromptQuestion kTokenize = {.errors = api::ErrorShape::kOpenAi,
                                  .parse = api::parse_tokenize,
                                  .answer = [](const TextEngine& engine, const TextPrompt& prompt) -> Result<std::string> {
                                    LINNET_ASSIGN(const auto tokens, engine.prompt_tokens(prompt));
                                    return api::encode_tokens(tokens);
                                  }};

const PromptQuestion kDetokenize = {.errors = api::ErrorShape::kOpenAi,
                                    .parse = api::parse_detokenize,
                                    .answer = [](const TextEngine& engine, const TextPrompt& prompt) -> Result<std::string> {
                                      return api::encode_detokenized(engine.detokenize(std::get<std::vector<TokenId>>(prompt)));
                                    }};

const PromptQuestion kApplyTemplate = {.errors = api::ErrorShape::kOpenAi,
                                       .parse = api::parse_chat,
                                       .answer = [](const TextEngine& engine, const TextPrompt& prompt) -> Result<std::string> {
                                         LINNET_ASSIGN(const std::string text, engine.render(std::get<ChatPrompt>(prompt)));
                                         return api::encode_rendered(text);
                                       }};

Task<> answer_text(const RouteContext& context, const TextProtocol& protocol, http::Request& request, ResponseWriter& writer) {
  Arrival arrival{.context = context, .errors = protocol.errors, .parse = protocol.parse, .request = request, .writer = writer};
  Result<Understood> understood = Error{};
  std::vector<TextStream> streams;
  std::function<Status()> submit = [&]() -> Status {
    understood = understand(arrival);
    if (!understood.ok()) return understood.error();
    understood->parsed.request.trace_id = request.header("x-linnet-trace-id").substr(0, kTraceIdBytesMax);
    LINNET_ASSIGN(streams, understood->engine->submit_choices(std::move(understood->parsed.request)));
    return {};
  };
  const Status submitted = co_await accept(arrival, std::move(submit));
  if (!submitted.ok()) co_return;
  Answer answer(context, protocol, request, writer, std::move(streams), *understood);
  if (understood->parsed.stream) {
    co_await answer.send_stream();
  } else {
    co_await answer.send_whole();
  }
}

Task<> answer_prompt(const RouteContext& context, const PromptQuestion& question, http::Request& request,
                     ResponseWriter& writer) {
  Arrival arrival{.context = context, .errors = question.errors, .parse = question.parse, .request = request, .writer = writer};
  std::string body;
  std::function<Status()> answer = [&]() -> Status {
    LINNET_ASSIGN(const Understood understood, understand(arrival));
    LINNET_ASSIGN(body, question.answer(*understood.engine, understood.parsed.request.prompt));
    return {};
  };
  const Status answered = co_await accept(arrival, std::move(answer));
  if (!answered.ok()) co_return;
  Response response{.content_type = "application/json", .body = std::move(body)};
  co_await writer.send(std::move(response));
}

}  // namespace linnet
