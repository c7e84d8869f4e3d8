// How far a fetch is, for people: a bar on a terminal, a line at every tenth elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "hub/hub_options.h"

namespace linnet {

// One thread. Borrows the clock.
class ProgressBar {
 public:
  ProgressBar(const Clock& clock, bool terminal, std::function<void(std::string_view)> write);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();  // leaves the bar as the last line

  void update(const FetchProgress& progress);
  // A line of its own, above the bar.
  void say(std::string_view line);

 private:
  std::string text(const FetchProgress& progress, Clock::Duration now) const;

  const Clock& clock_;
  bool terminal_;
  std::function<void(std::string_view)> write_;
  Clock::Duration begun_{};
  std::optional<Clock::Duration> drawn_;
  std::uint64_t before_ = 0;  // what was there when it began: no part of the speed
  std::uint64_t tenths_ = 0;  // shown last
  bool bar_is_last_ = false;
};

}  // namespace linnet
