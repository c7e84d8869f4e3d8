#include "hub/progress_bar.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "hub/size_text.h"

namespace linnet {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr double kSpeedSeconds = 0.5;  // before that a speed says nothing
constexpr std::size_t kCells = 24;
constexpr std::string_view kClearLine = "\r\x1b[K";

double share_of(const FetchProgress& progress) {
  return progress.total == 0 ? 1.0 : static_cast<double>(progress.done) / static_cast<double>(progress.total);
}

// "0:07", "1:02:09"
std::string time_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::ceil(seconds));
  const unsigned hours = static_cast<unsigned>(whole / 3600);
  const unsigned minutes = static_cast<unsigned>(whole / 60 % 60);
  char text[48];
  if (hours > 0) {
    std::snprintf(text, sizeof text, "%u:%02u:%02u", hours, minutes, static_cast<unsigned>(whole % 60));
  } else {
    std::snprintf(text, sizeof text, "%u:%02u", minutes, static_cast<unsigned>(whole % 60));
  }
  return text;
}

}  // namespace

ProgressBar::ProgressBar(const Clock& clock, bool terminal, std::function<void(std::string_view)> write)
    : clock_(clock), terminal_(terminal), write_(std::move(write)) {}

ProgressBar::~ProgressBar() {
  if (bar_is_last_) write_("\n");
}

std::string ProgressBar::text(const FetchProgress& progress, Clock::Duration now) const {
  char percent[16];
  std::snprintf(percent, sizeof percent, "%3.0f %%  ", std::floor(100 * share_of(progress)));
  std::string line = percent + size_text(progress.done) + " of " + size_text(progress.total);
  const double seconds = std::chrono::duration<double>(now - begun_).count();
  const double speed = static_cast<double>(progress.done - before_) / std::max(seconds, kSpeedSeconds);
  if (seconds < kSpeedSeconds || speed < 1) return line;
  line += "  " + size_text(static_cast<std::uint64_t>(speed)) + "/s";
  constexpr double kLeftMax = 360'000;  // s; longer is no answer
  const double left = static_cast<double>(progress.total - progress.done) / speed;
  if (progress.done < progress.total && left < kLeftMax) line += "  " + time_text(left) + " left";
  return line;
}

void ProgressBar::update(const FetchProgress& progress) {
  const Clock::Duration now = clock_.now();
  const bool first = !drawn_;
  if (first) {
    begun_ = now;
    before_ = progress.done;
  }
  const auto tenths = static_cast<std::uint64_t>(10 * share_of(progress));
  const bool whole = progress.done == progress.total;
  if (terminal_) {
    if (!first && now - *drawn_ < kRedraw && !whole) return;
    const auto full = static_cast<std::size_t>(static_cast<double>(kCells) * share_of(progress));
    write_(std::string(kClearLine) + "[" + std::string(full, '=') + std::string(kCells - full, ' ') + "] " + text(progress, now));
    bar_is_last_ = true;
  } else if (first ? whole : tenths > tenths_) {
    write_(text(progress, now) + "\n");
  }
  tenths_ = tenths;
  drawn_ = now;
}

void ProgressBar::say(std::string_view line) {
  write_((bar_is_last_ ? std::string(kClearLine) : std::string()) + std::string(line) + "\n");
  bar_is_last_ = false;
}

}  // namespace linnet
