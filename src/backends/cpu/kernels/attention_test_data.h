// What attention's tests share: sequences whose keys lie anywhere in a pool, steps run as an executor would, exact arithmetic.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/kernels/kernel_set.h"
#include "weights/half.h"

namespace linnet::cpu {

struct Shape {
  std::int32_t heads;
  std::int32_t kv_heads;
  std::int32_t head_dim;
};

using Floats = std::vector<float>;

// Sequences with their q, K, V for all positions, and blocks that lie anywhere in a pool whose every number is NaN at first.
class World {
 public:
  World(Shape shape, std::vector<std::int32_t> lengths, float deviation = 1.5F)
      : shape_(shape),
        layout_{.layers = 2, .kv_heads = shape.kv_heads, .head_dim = shape.head_dim},
        lengths_(std::move(lengths)) {
    std::mt19937 rng(static_cast<std::uint32_t>(shape.heads * 1000 + shape.head_dim));
    std::normal_distribution<float> normal;
    std::int32_t blocks = 0;
    for (const std::int32_t length : lengths_) {
      const auto n = static_cast<std::size_t>(length);
      q_.emplace_back(n * q_width());
      k_.emplace_back(n * kv_width());
      v_.emplace_back(n * kv_width());
      for (float& x : q_.back()) x = normal(rng) * deviation;
      for (float& x : k_.back()) x = normal(rng);
      for (float& x : v_.back()) x = normal(rng);
      const std::int32_t count = (length + kBlockTokens - 1) / kBlockTokens;
      tables_.emplace_back();
      for (std::int32_t b = 0; b < count; ++b) tables_.back().push_back(BlockId{static_cast<std::uint32_t>(blocks++)});
    }
    pool_ = std::move(KvPool::create(layout_, blocks + 1)).value();
    gone_ = BlockId{static_cast<std::uint32_t>(blocks)};
    const auto mix = [&](BlockId id) {
      return BlockId{static_cast<std::uint32_t>((index_of(id) * 7919) % static_cast<std::size_t>(blocks))};
    };
    for (auto& table : tables_) {
      if (blocks % 7919 != 0) std::transform(table.begin(), table.end(), table.begin(), mix);
    }
    std::memset(pool_.block(BlockId{0}), 0x7e, layout_.block_bytes() * static_cast<std::size_t>(blocks + 1));
  }

  std::size_t q_width() const { return static_cast<std::size_t>(shape_.heads * shape_.head_dim); }
  std::size_t kv_width() const { return static_cast<std::size_t>(shape_.kv_heads * shape_.head_dim); }
  const Shape& shape() const { return shape_; }
  const KvLayout& layout() const { return layout_; }
  const std::vector<std::int32_t>& lengths() const { return lengths_; }
  // The blocks of a sequence from which keys before `first_key` are gone: there is NaN in their place.
  std::vector<BlockId> table(std::size_t sequence, std::int32_t first_key) const {
    std::vector<BlockId> table = tables_[sequence];
    std::fill(table.begin(), table.begin() + first_key / kBlockTokens, gone_);
    return table;
  }
  const KvPool& pool() const { return pool_; }
  Floats& q(std::size_t sequence) { return q_[sequence]; }
  Floats& k(std::size_t sequence) { return k_[sequence]; }
  Floats& v(std::size_t sequence) { return v_[sequence]; }

 private:
  Shape shape_;
  KvLayout layout_;
  std::vector<std::int32_t> lengths_;
  std::vector<Floats> q_, k_, v_;
  std::vector<std::vector<BlockId>> tables_;
  KvPool pool_;
  BlockId gone_{};
};

struct Piece {
  std::size_t sequence;
  std::int32_t position;
  std::int32_t count;
};

// Runs steps as an executor would: the step's q, K and V side by side, written, then attended, in layer 1.
class Runner {
 public:
  // `call`: of every layer.
  Runner(World& world, const KernelSet& set, int threads, AttentionCall call = {})
      : world_(world), pool_({.threads = threads}), call_(call) {
    call_.layer = 1;
    const std::int32_t longest = *std::max_element(world.lengths().begin(), world.lengths().end());
    const std::int32_t all = std::accumulate(world.lengths().begin(), world.lengths().end(), 0);
    attention_ =
        std::make_unique<Attention>(std::move(Attention::create({.layout = world.layout(),
                                                                 .heads = world.shape().heads,
                                                                 .rows_max = 40,
                                                                 .tokens_max = all,
                                                                 .context_max = longest},
                                                                {set.attention(world.shape().head_dim), set.kv_write}, pool_))
                                        .value());
    for (const std::int32_t length : world.lengths()) out_.emplace_back(static_cast<std::size_t>(length) * world.q_width(), NAN);
  }

  void step(const std::vector<Piece>& pieces, bool write = true) {
    const auto qw = static_cast<std::int64_t>(world_.q_width());
    const auto kw = static_cast<std::int64_t>(world_.kv_width());
    const std::int64_t stride = qw + 2 * kw;  // side by side, as a joined projection leaves them
    Floats qkv;
    std::vector<AttentionRow> rows;
    std::vector<std::vector<BlockId>> tables;
    for (const Piece& p : pieces) {
      tables.push_back(world_.table(p.sequence, call_.window == 0 ? 0 : std::max(0, p.position - call_.window + 1)));
      rows.push_back({.position = p.position,
                      .count = p.count,
                      .token_begin = static_cast<std::int32_t>(static_cast<std::int64_t>(qkv.size()) / stride),
                      .blocks = tables.back()});
      for (std::int64_t t = p.position; t < p.position + p.count; ++t) {
        qkv.insert(qkv.end(), &world_.q(p.sequence)[static_cast<std::size_t>(t * qw)],
                   &world_.q(p.sequence)[static_cast<std::size_t>(t * qw)] + qw);
        qkv.insert(qkv.end(), &world_.k(p.sequence)[static_cast<std::size_t>(t * kw)],
                   &world_.k(p.sequence)[static_cast<std::size_t>(t * kw)] + kw);
        qkv.insert(qkv.end(), &world_.v(p.sequence)[static_cast<std::size_t>(t * kw)],
                   &world_.v(p.sequence)[static_cast<std::size_t>(t * kw)] + kw);
      }
    }
    Floats out(qkv.size() / static_cast<std::size_t>(stride) * world_.q_width(), NAN);
    pool_.begin_step();
    attention_->plan(rows, world_.pool().blocks());
    if (write) attention_->write(pool_, 1, {qkv.data() + qw, stride}, {qkv.data() + qw + kw, stride}, [](int, int) {});
    attention_->run(pool_, call_, {qkv.data(), stride}, {out.data(), qw});
    if (pieces.front().count == 1) {  // as a next layer would: the plan is as good as new
      const Floats once = std::exchange(out, Floats(out.size(), NAN));
      attention_->run(pool_, call_, {qkv.data(), stride}, {out.data(), qw});
      EXPECT_EQ(std::memcmp(out.data(), once.data(), out.size() * sizeof(float)), 0);
    }
    pool_.end_step();
    auto from = out.begin();
    for (const Piece& p : pieces) {
      const auto size = static_cast<std::ptrdiff_t>(p.count * qw);
      std::copy(from, from + size, out_[p.sequence].begin() + p.position * qw);
      from += size;
    }
  }

  const Floats& out(std::size_t sequence) const { return out_[sequence]; }
  const Attention& attention() const { return *attention_; }

 private:
  World& world_;
  Pool pool_;
  AttentionCall call_;
  std::unique_ptr<Attention> attention_;
  std::vector<Floats> out_;
};

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline bool same_row(const World& world, const Floats& a, const Floats& b, std::int32_t position) {
  const std::size_t at = static_cast<std::size_t>(position) * world.q_width();
  return std::memcmp(a.data() + at, b.data() + at, world.q_width() * sizeof(float)) == 0;
}

// A row and head of the first sequence.
struct Place {
  std::int32_t position;
  std::int32_t head;
};

// Exact attention in f64 on the f16 keys and values.
inline std::vector<double> reference(World& world, Place place, const AttentionCall& call) {
  constexpr std::size_t sequence = 0;
  const auto [position, head] = place;
  const auto dim = static_cast<std::size_t>(world.shape().head_dim);
  const std::size_t kv_head = static_cast<std::size_t>(head / (world.shape().heads / world.shape().kv_heads));
  const float* const q =
      &world.q(sequence)[static_cast<std::size_t>(position) * world.q_width() + static_cast<std::size_t>(head) * dim];
  const auto half = [](float x) { return static_cast<double>(half_to_float(float_to_half(x))); };
  std::vector<double> p;
  double largest = -std::numeric_limits<double>::infinity();
  const std::int32_t begin = call.window == 0 ? 0 : std::max(0, position - call.window + 1);
  for (auto t = static_cast<std::size_t>(begin); t <= static_cast<std::size_t>(position); ++t) {
    double s = 0;
    for (std::size_t d = 0; d < dim; ++d)
      s += static_cast<double>(q[d]) * half(world.k(sequence)[t * world.kv_width() + kv_head * dim + d]);
    s *= call.scale == 0 ? 1 / std::sqrt(static_cast<double>(dim)) : static_cast<double>(call.scale);
    const auto cap = static_cast<double>(call.soft_cap);
    p.push_back(cap == 0 ? s : cap * std::tanh(s / cap));
    largest = std::max(largest, p.back());
  }
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - largest);
  std::vector<double> o(dim);
  for (std::size_t t = 0; t < p.size(); ++t) {
    for (std::size_t d = 0; d < dim; ++d)
      o[d] += p[t] / sum * half(world.v(sequence)[(t + static_cast<std::size_t>(begin)) * world.kv_width() + kv_head * dim + d]);
  }
  return o;
}

// rms of the error by rms of the result, over some rows.
inline double relative_error(World& world, const Floats& out, const std::vector<std::int32_t>& positions,
                             const AttentionCall& call = {}) {
  double errors = 0;
  double squares = 0;
  for (const std::int32_t p : positions) {
    for (std::int32_t h = 0; h < world.shape().heads; ++h) {
      const std::vector<double> expected = reference(world, {p, h}, call);
      for (std::size_t d = 0; d < expected.size(); ++d) {
        const double got = static_cast<double>(
            out[static_cast<std::size_t>(p) * world.q_width() + static_cast<std::size_t>(h) * expected.size() + d]);
        errors += (got - expected[d]) * (got - expected[d]);
        squares += expected[d] * expected[d];
      }
    }
  }
  return std::sqrt(errors / squares);
}

// The sets that this machine runs.
inline std::span<const KernelSet* const> attention_sets() { return runnable_kernel_sets(); }

class AttentionOf : public testing::TestWithParam<std::size_t> {
 protected:
  const KernelSet& set() const { return *attention_sets()[GetParam()]; }
};

inline std::string set_name(const testing::TestParamInfo<std::size_t>& tested) {
  return std::string(attention_sets()[tested.param]->name);
}

}  // namespace linnet::cpu
