#include "speculation/test_layers.h"

#include <algorithm>
#include <deque>
#include <variant>

#include "base/check.h"
#include "base/random.h"

namespace linnet {
namespace {

using Values = std::vector<std::int64_t>;

std::int64_t value_of(TokenId token) { return static_cast<std::int64_t>(token); }

std::int64_t longest(const std::vector<Values>& rows) {
  std::size_t most = 0;
  for (const Values& row : rows) most = std::max(most, row.size());
  return static_cast<std::int64_t>(most);
}

class BlockLayer : public TestLayer {
 public:
  BlockLayer(TestGroup& group, std::size_t rows) : TestLayer(group, rows), values_(rows), begun_(rows) {}
  ~BlockLayer() override {
    for (const Values& row : values_) group_.blocks_out -= blocks(row.size());
  }
  void write(std::size_t row, TokenId token) override { resize(row, values_[row].size() + 1, value_of(token)); }
  Values seen(std::size_t row) const override { return values_[row]; }
  std::unique_ptr<TestLayer> fresh(TestGroup& group, std::size_t rows) const override { return make_block_layer(group, rows); }
  std::string name() const override { return "blocks"; }
  std::int64_t offset() const override { return longest(values_); }
  RowSpeculativeState round_functions() override { return guarded_round(); }

 private:
  static constexpr std::size_t kBlockTokens = 4;
  static std::int64_t blocks(std::size_t tokens) { return static_cast<std::int64_t>((tokens + kBlockTokens - 1) / kBlockTokens); }
  void resize(std::size_t row, std::size_t size, std::int64_t value) {
    group_.blocks_out += blocks(size) - blocks(values_[row].size());
    values_[row].resize(size, value);
  }
  void begin_round() override {
    for (std::size_t row = 0; row < rows_; ++row) begun_[row] = values_[row].size();
  }
  void keep_of_round(std::size_t row, std::int64_t keep) override {
    resize(row, begun_[row] + static_cast<std::size_t>(keep), 0);
  }

  std::vector<Values> values_;
  std::vector<std::size_t> begun_;
};

// Sees the last kWindow tokens. Older ones go between rounds only: within one they are needed again if it is undone.
class WindowLayer : public TestLayer {
 public:
  WindowLayer(TestGroup& group, std::size_t rows) : TestLayer(group, rows), values_(rows), written_(rows), begun_(rows) {}
  void write(std::size_t row, TokenId token) override {
    values_[row].push_back(value_of(token));
    ++written_[row];
    if (!in_round_) forget(row);
  }
  Values seen(std::size_t row) const override {
    const std::size_t count = std::min(kWindow, values_[row].size());
    Values last(values_[row].end() - static_cast<std::ptrdiff_t>(count), values_[row].end());
    last.push_back(written_[row]);  // positions go on
    return last;
  }
  std::unique_ptr<TestLayer> fresh(TestGroup& group, std::size_t rows) const override { return make_window_layer(group, rows); }
  std::string name() const override { return "window"; }
  std::int64_t offset() const override { return *std::max_element(written_.begin(), written_.end()); }
  RowSpeculativeState round_functions() override { return guarded_round(); }

 private:
  static constexpr std::size_t kWindow = 6;
  void forget(std::size_t row) {
    while (values_[row].size() > kWindow) values_[row].pop_front();
  }
  void end_round() {
    in_round_ = false;
    for (std::size_t row = 0; row < rows_; ++row) forget(row);
  }
  void begin_round() override {
    in_round_ = true;
    begun_ = written_;
  }
  void commit_round() override { end_round(); }
  void keep_of_round(std::size_t row, std::int64_t keep) override {
    for (; written_[row] > begun_[row] + keep; --written_[row]) values_[row].pop_back();
    if (row + 1 == rows_) end_round();
  }

  std::vector<std::deque<std::int64_t>> values_;
  Values written_;
  Values begun_;
  bool in_round_ = false;
};

// A full group is kept as its sum alone. What a window completed is remembered exactly until the round ends.
class QuantizedLayer : public TestLayer {
 public:
  QuantizedLayer(TestGroup& group, std::size_t rows) : TestLayer(group, rows), states_(rows) {}
  void write(std::size_t row, TokenId token) override { states_[row].write(value_of(token), in_round_); }
  Values seen(std::size_t row) const override {
    Values all = states_[row].sums;
    all.insert(all.end(), states_[row].tail.begin(), states_[row].tail.end());
    return all;
  }
  std::unique_ptr<TestLayer> fresh(TestGroup& group, std::size_t rows) const override {
    return make_quantized_layer(group, rows);
  }
  std::string name() const override { return "quantized"; }
  std::int64_t offset() const override {
    std::int64_t most = 0;
    for (const State& state : states_) most = std::max(most, state.tokens());
    return most;
  }
  RowSpeculativeState round_functions() override { return guarded_round(); }

 private:
  static constexpr std::size_t kGroup = 4;
  struct State {
    Values sums;
    Values tail;       // of the group that is not full
    Values tail_then;  // at begin
    Values window;     // written since
    std::size_t sums_then = 0;

    std::int64_t tokens() const { return static_cast<std::int64_t>(sums.size() * kGroup + tail.size()); }
    void write(std::int64_t value, bool in_round) {
      if (in_round) window.push_back(value);
      tail.push_back(value);
      if (tail.size() < kGroup) return;
      std::int64_t sum = 0;
      for (const std::int64_t each : tail) sum += each;
      sums.push_back(sum);
      tail.clear();
    }
  };
  void begin_round() override {
    in_round_ = true;
    for (State& state : states_) {
      state.tail_then = state.tail;
      state.sums_then = state.sums.size();
      state.window.clear();
    }
  }
  void commit_round() override { in_round_ = false; }
  void keep_of_round(std::size_t row, std::int64_t keep) override {
    in_round_ = false;
    State& state = states_[row];
    state.sums.resize(state.sums_then);
    state.tail = state.tail_then;
    for (std::int64_t i = 0; i < keep; ++i) state.write(state.window[static_cast<std::size_t>(i)], false);
  }

  std::vector<State> states_;
  bool in_round_ = false;
};

// Undone by a copy of the state at begin and the inputs since.
class RecurrentLayer : public TestLayer {
 public:
  RecurrentLayer(TestGroup& group, std::size_t rows) : TestLayer(group, rows), states_(rows) {}
  void write(std::size_t row, TokenId token) override {
    states_[row].window.push_back(value_of(token));
    states_[row].advance(value_of(token));
  }
  Values seen(std::size_t row) const override { return {static_cast<std::int64_t>(states_[row].mixed), states_[row].written}; }
  std::unique_ptr<TestLayer> fresh(TestGroup& group, std::size_t rows) const override {
    return make_recurrent_layer(group, rows);
  }
  std::string name() const override { return "recurrent"; }
  std::int64_t offset() const override {
    std::int64_t most = 0;
    for (const State& state : states_) most = std::max(most, state.written);
    return most;
  }
  RowSpeculativeState round_functions() override { return guarded_round(); }

 private:
  struct State {
    std::uint64_t mixed = 0;
    std::int64_t written = 0;
    std::uint64_t mixed_then = 0;
    std::int64_t written_then = 0;
    Values window;

    void advance(std::int64_t value) {
      mixed = mix64(mixed ^ static_cast<std::uint64_t>(value));
      ++written;
    }
  };
  void begin_round() override {
    for (State& state : states_) {
      state.mixed_then = state.mixed;
      state.written_then = state.written;
      state.window.clear();
    }
  }
  void keep_of_round(std::size_t row, std::int64_t keep) override {
    State& state = states_[row];
    state.mixed = state.mixed_then;
    state.written = state.written_then;
    for (std::int64_t i = 0; i < keep; ++i) state.advance(state.window[static_cast<std::size_t>(i)]);
  }

  std::vector<State> states_;
};

class ContiguousLayer : public TestLayer {
 public:
  explicit ContiguousLayer(TestGroup& group) : TestLayer(group, 1) {}
  void write(std::size_t, TokenId token) override { values_.push_back(value_of(token)); }
  Values seen(std::size_t) const override { return values_; }
  std::unique_ptr<TestLayer> fresh(TestGroup& group, std::size_t rows) const override {
    return make_contiguous_layer(group, rows);
  }
  std::string name() const override { return "contiguous"; }
  std::int64_t offset() const override { return static_cast<std::int64_t>(values_.size()); }
  bool can_trim() const override { return true; }
  Status trim(std::int64_t count) override {
    LINNET_RETURN_IF_ERROR(TestLayer::trim(count));
    values_.resize(values_.size() - static_cast<std::size_t>(count));
    return {};
  }

 private:
  Values values_;
};

class RingLayer : public TestLayer {
 public:
  explicit RingLayer(TestGroup& group) : TestLayer(group, 1) {}
  void write(std::size_t, TokenId token) override { ring_[static_cast<std::size_t>(written_++ % kCapacity)] = value_of(token); }
  Values seen(std::size_t) const override {
    Values last;
    for (std::int64_t at = std::max<std::int64_t>(0, written_ - kCapacity); at < written_; ++at)
      last.push_back(ring_[static_cast<std::size_t>(at % kCapacity)]);
    last.push_back(written_);
    return last;
  }
  std::unique_ptr<TestLayer> fresh(TestGroup& group, std::size_t rows) const override { return make_ring_layer(group, rows); }
  std::string name() const override { return "ring"; }
  std::int64_t offset() const override { return written_; }
  std::optional<std::int64_t> ring_capacity() const override { return kCapacity; }
  bool can_trim() const override { return written_ < kCapacity; }
  Status trim(std::int64_t count) override {
    CHECK(can_trim());
    LINNET_RETURN_IF_ERROR(TestLayer::trim(count));
    written_ -= count;
    return {};
  }

 private:
  static constexpr std::int64_t kCapacity = 40;
  std::int64_t written_ = 0;
  Values ring_ = Values(kCapacity);
};

}  // namespace

Status TestGroup::call(const char* what) {
  if (++calls != failing) return {};
  return Error{ErrorCode::kIo, std::string("the layer failed in ") + what, ""};
}

Status TestLayer::trim(std::int64_t) { return group_.call("trim"); }

void TestLayer::keep_of_round(std::size_t, std::int64_t) {}

RowSpeculativeState TestLayer::guarded_round() {
  RowSpeculativeState round;
  round.spec_round_begin = [this]() -> Status {
    LINNET_RETURN_IF_ERROR(group_.call("begin"));
    begin_round();
    return {};
  };
  round.spec_round_commit = [this]() -> Status {
    LINNET_RETURN_IF_ERROR(group_.call("commit"));
    commit_round();
    return {};
  };
  round.spec_round_rollback = [this](const Keep& keep) -> Status {
    LINNET_RETURN_IF_ERROR(group_.call("rollback"));
    for (std::size_t row = 0; row < rows_; ++row) {
      const auto* each = std::get_if<std::span<const std::int64_t>>(&keep);
      keep_of_round(row, each != nullptr ? (*each)[row] : std::get<std::int64_t>(keep));
    }
    return {};
  };
  return round;
}

std::unique_ptr<TestLayer> make_block_layer(TestGroup& group, std::size_t rows) {
  return std::make_unique<BlockLayer>(group, rows);
}
std::unique_ptr<TestLayer> make_window_layer(TestGroup& group, std::size_t rows) {
  return std::make_unique<WindowLayer>(group, rows);
}
std::unique_ptr<TestLayer> make_quantized_layer(TestGroup& group, std::size_t rows) {
  return std::make_unique<QuantizedLayer>(group, rows);
}
std::unique_ptr<TestLayer> make_recurrent_layer(TestGroup& group, std::size_t rows) {
  return std::make_unique<RecurrentLayer>(group, rows);
}
std::unique_ptr<TestLayer> make_contiguous_layer(TestGroup& group, std::size_t rows) {
  CHECK(rows == 1);
  return std::make_unique<ContiguousLayer>(group);
}
std::unique_ptr<TestLayer> make_ring_layer(TestGroup& group, std::size_t rows) {
  CHECK(rows == 1);
  return std::make_unique<RingLayer>(group);
}

std::vector<LayerState*> pointers_to(const std::vector<std::unique_ptr<TestLayer>>& layers) {
  std::vector<LayerState*> pointers;
  for (const auto& layer : layers) pointers.push_back(layer.get());
  return pointers;
}

}  // namespace linnet
