// One request's answer, as a stream or run to its end.
#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "linnet/text_engine.h"

namespace linnet {

Result<TextStream> TextEngine::submit(TextRequest request) {
  if (request.choices != 1) {
    return Error{ErrorCode::kInvalidArgument, "submit() is for one answer; submit_choices() gives a stream for each", "n"};
  }
  LINNET_ASSIGN(std::vector<TextStream> streams, submit_choices(std::move(request)));
  return std::move(streams.front());
}

Result<TextAnswer> TextEngine::run(TextRequest request) {
  LINNET_ASSIGN(TextStream stream, submit(std::move(request)));
  TextAnswer answer;
  for (;;) {
    TextEvent event = stream.next();
    if (auto* delta = std::get_if<TextDelta>(&event)) {
      std::move(delta->logprobs.begin(), delta->logprobs.end(), std::back_inserter(answer.logprobs));
      (delta->channel == TextChannel::kReasoning ? answer.reasoning : answer.content) += delta->text;
      continue;
    }
    answer.finish = std::get<FinishEvent>(std::move(event));
    if (answer.finish.error) return *answer.finish.error;
    if (answer.finish.reason == FinishReason::kCancelled) {
      return Error{ErrorCode::kCancelled, "the request was cancelled before its answer was complete", ""};
    }
    return answer;
  }
}

}  // namespace linnet
