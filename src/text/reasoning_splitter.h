// Tells the reasoning part of an answer from its content, in a text that arrives in pieces.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "linnet/status.h"

namespace linnet {

// What stands before and behind a model's thoughts.
struct ReasoningMarkers {
  std::string begin;
  std::string end;

  bool operator==(const ReasoningMarkers&) const = default;
};

// The first known kind whose end marker stands in `chat_template`.
std::optional<ReasoningMarkers> find_reasoning_markers(std::string_view chat_template);

// By the name of a kind (--reasoning-parser); nothing for "none". Error: kInvalidArgument, with the known names.
Result<std::optional<ReasoningMarkers>> reasoning_markers_named(std::string_view name);

struct SplitText {
  std::string reasoning;
  std::string content;  // behind the reasoning

  bool operator==(const SplitText&) const = default;
};

// One per sequence, one thread at a time.
//   1. Reasoning is what stands between the markers at the beginning of the answer; the prompt may have written the first one.
//   Without a beginning there is none: markers further on are content.
//   2. White space around the reasoning and before the content behind it belongs to neither.
//   3. The result does not depend on how the text was cut. Held back is only what may still be a marker or such white space.
class ReasoningSplitter {
 public:
  enum class Start { kBefore, kInside };  // whether the prompt has opened the reasoning

  ReasoningSplitter(ReasoningMarkers markers, Start start);

  SplitText push(std::string_view text);
  // The text is over: what was held back.
  SplitText finish();
  // Between the markers.
  bool inside() const { return state_ == State::kOpened || state_ == State::kInside; }

 private:
  enum class State {
    kStart,   // nothing yet, or white space, or part of the first marker
    kOpened,  // inside, nothing but white space yet
    kInside,
    kClosed,  // behind the end marker, nothing but white space yet
    kContent,
  };
  bool step(SplitText& split);  // false: more text is needed
  bool step_start(SplitText& split);
  bool step_inside(SplitText& split);
  bool skip_space(State next);

  ReasoningMarkers markers_;
  State state_;
  std::string held_;
};

// Whether `prompt` ends with the begin marker, white space aside.
bool opens_reasoning(std::string_view prompt, const ReasoningMarkers& markers);

}  // namespace linnet
