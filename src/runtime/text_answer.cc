// The blocking face of the engine: one request, run to its end.
#include <utility>
#include <variant>

#include "linnet/text_engine.h"

namespace linnet {

Result<TextAnswer> TextEngine::run(TextRequest request) {
  LINNET_ASSIGN(TextStream stream, submit(std::move(request)));
  TextAnswer answer;
  for (;;) {
    TextEvent event = stream.next();
    if (const auto* delta = std::get_if<TextDelta>(&event)) {
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
