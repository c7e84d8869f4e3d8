#include "text/reasoning_splitter.h"

#include <algorithm>
#include <array>
#include <utility>

namespace linnet {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

struct Kind {
  std::string_view names;  // of --reasoning-parser, between spaces
  std::string_view begin;
  std::string_view end;
};

constexpr std::array kKinds = {
    Kind{" think deepseek_r1 qwen3 glm45 ", "<think>", "</think>"},
    Kind{" magistral mistral ", "[THINK]", "[/THINK]"},
    Kind{" seed_oss ", "<seed:think>", "</seed:think>"},
    Kind{" command_r ", "<|START_THINKING|>", "<|END_THINKING|>"},
    Kind{" thinking ", "<thinking>", "</thinking>"},
};

ReasoningMarkers markers_of(const Kind& kind) { return {.begin = std::string(kind.begin), .end = std::string(kind.end)}; }

// Length of the longest end of `text` that is a beginning of `marker` without being all of it.
std::size_t partial_marker(std::string_view text, std::string_view marker) {
  std::size_t length = std::min(text.size(), marker.size() - 1);
  while (length > 0 && !text.ends_with(marker.substr(0, length))) --length;
  return length;
}

}  // namespace

std::optional<ReasoningMarkers> find_reasoning_markers(std::string_view chat_template) {
  for (const Kind& kind : kKinds) {
    if (chat_template.find(kind.end) != std::string_view::npos) return markers_of(kind);
  }
  return std::nullopt;
}

Result<std::optional<ReasoningMarkers>> reasoning_markers_named(std::string_view name) {
  if (name == "none") return std::optional<ReasoningMarkers>();
  std::string known = "none";
  for (const Kind& kind : kKinds) {
    if (!name.empty() && kind.names.find(" " + std::string(name) + " ") != std::string_view::npos)
      return std::optional(markers_of(kind));
    known += kind.names;
  }
  return Error{ErrorCode::kInvalidArgument, "--reasoning-parser " + std::string(name) + " is not known; there is " + known,
               "--reasoning-parser"};
}

bool opens_reasoning(std::string_view prompt, const ReasoningMarkers& markers) {
  const std::size_t end = prompt.find_last_not_of(kSpace);
  return end != std::string_view::npos && prompt.substr(0, end + 1).ends_with(markers.begin);
}

ReasoningSplitter::ReasoningSplitter(ReasoningMarkers markers, Start start)
    : markers_(std::move(markers)), state_(start == Start::kInside ? State::kOpened : State::kStart) {}

SplitText ReasoningSplitter::push(std::string_view text) {
  SplitText split;
  held_.append(text);
  while (step(split)) {
  }
  return split;
}

SplitText ReasoningSplitter::finish() {
  SplitText split;
  // An unfinished marker was text after all; white space is kept where no reasoning is beside it.
  if (state_ == State::kStart) split.content = std::move(held_);
  if (state_ == State::kInside || state_ == State::kOpened) {
    held_.resize(held_.find_last_not_of(kSpace) + 1);
    split.reasoning = std::move(held_);
  }
  held_.clear();
  return split;
}

bool ReasoningSplitter::step(SplitText& split) {
  switch (state_) {
    case State::kStart:
      return step_start(split);
    case State::kOpened:
      return skip_space(State::kInside);
    case State::kInside:
      return step_inside(split);
    case State::kClosed:
      return skip_space(State::kContent);
    case State::kContent:
      split.content += std::exchange(held_, {});
      return false;
  }
  return false;
}

bool ReasoningSplitter::skip_space(State next) {
  held_.erase(0, held_.find_first_not_of(kSpace));
  if (held_.empty()) return false;
  state_ = next;
  return true;
}

bool ReasoningSplitter::step_start(SplitText& split) {
  const std::size_t first = held_.find_first_not_of(kSpace);
  if (first == std::string::npos) return false;
  const std::string_view text = std::string_view(held_).substr(first);
  if (text.starts_with(markers_.begin)) {
    held_.erase(0, first + markers_.begin.size());
    state_ = State::kOpened;
    return true;
  }
  if (std::string_view(markers_.begin).starts_with(text)) return false;
  split.content += std::exchange(held_, {});
  state_ = State::kContent;
  return false;
}

bool ReasoningSplitter::step_inside(SplitText& split) {
  const std::size_t end = held_.find(markers_.end);
  const std::size_t known = end == std::string::npos ? held_.size() - partial_marker(held_, markers_.end) : end;
  // White space before the marker, or before what may become it, is not known to be inside.
  const std::size_t last = std::string_view(held_).substr(0, known).find_last_not_of(kSpace);
  const std::size_t certain = last + 1;  // npos: 0
  split.reasoning.append(held_, 0, certain);
  if (end == std::string::npos) {
    held_.erase(0, certain);
    return false;
  }
  held_.erase(0, end + markers_.end.size());
  state_ = State::kClosed;
  return true;
}

}  // namespace linnet
