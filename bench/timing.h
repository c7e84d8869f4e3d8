// How long something takes, for the benches that print a line a shape.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/clock.h"

namespace linnet {

struct Times {
  double median = 0;  // seconds
  double least = 0;
  double most = 0;
};

// Of nine calls, after one that does not count.
template <class F>
Times timed(F&& f) {
  const SystemClock clock;
  f();
  std::vector<double> seconds;
  for (int i = 0; i < 9; ++i) {
    const auto start = clock.now();
    f();
    seconds.push_back(std::chrono::duration<double>(clock.now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return {seconds[4], seconds.front(), seconds.back()};
}

}  // namespace linnet
