#include "backends/cpu/kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/half.h"
#include "backends/cpu/kernels/testing/this_cpu.h"

namespace linnet::cpu {
namespace {

struct Isa {
  std::string name;
  AttentionKernel (*attention)(std::int32_t head_dim);
  KvWrite kv_write;
};

std::vector<Isa> isas() {
  std::vector<Isa> all = {{"portable", attention_kernel_portable, kv_write_portable}};
  if (this_cpu_has_avx512()) all.push_back({"avx512", attention_kernel_avx512, kv_write_avx512});
  if (this_cpu_has_amx()) all.push_back({"amx", attention_kernel_amx, kv_write_avx512});
  return all;
}

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
    pool_ = std::move(KvPool::create(layout_, blocks)).value();
    const auto mix = [&](BlockId id) {
      return BlockId{static_cast<std::uint32_t>((index_of(id) * 7919) % static_cast<std::size_t>(blocks))};
    };
    for (auto& table : tables_) {
      if (blocks % 7919 != 0) std::transform(table.begin(), table.end(), table.begin(), mix);
    }
    std::memset(pool_.block(BlockId{0}), 0x7e, layout_.block_bytes() * static_cast<std::size_t>(blocks));
  }

  std::size_t q_width() const { return static_cast<std::size_t>(shape_.heads * shape_.head_dim); }
  std::size_t kv_width() const { return static_cast<std::size_t>(shape_.kv_heads * shape_.head_dim); }
  const Shape& shape() const { return shape_; }
  const KvLayout& layout() const { return layout_; }
  const std::vector<std::int32_t>& lengths() const { return lengths_; }
  const std::vector<BlockId>& table(std::size_t sequence) const { return tables_[sequence]; }
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
};

struct Piece {
  std::size_t sequence;
  std::int32_t position;
  std::int32_t count;
};

// Runs steps as an executor would: the step's q, K and V side by side, written, then attended, in layer 1.
class Runner {
 public:
  Runner(World& world, const Isa& isa, int threads) : world_(world), pool_({.threads = threads}) {
    const std::int32_t longest = *std::max_element(world.lengths().begin(), world.lengths().end());
    const std::int32_t all = std::accumulate(world.lengths().begin(), world.lengths().end(), 0);
    attention_ =
        std::make_unique<Attention>(std::move(Attention::create({.layout = world.layout(),
                                                                 .heads = world.shape().heads,
                                                                 .rows_max = 40,
                                                                 .tokens_max = all,
                                                                 .context_max = longest},
                                                                {isa.attention(world.shape().head_dim), isa.kv_write}, pool_))
                                        .value());
    for (const std::int32_t length : world.lengths()) out_.emplace_back(static_cast<std::size_t>(length) * world.q_width(), NAN);
  }

  void step(const std::vector<Piece>& pieces, bool write = true) {
    const auto qw = static_cast<std::int64_t>(world_.q_width());
    const auto kw = static_cast<std::int64_t>(world_.kv_width());
    const std::int64_t stride = qw + 2 * kw;  // side by side, as a joined projection leaves them
    Floats qkv;
    std::vector<AttentionRow> rows;
    for (const Piece& p : pieces) {
      rows.push_back({.position = p.position,
                      .count = p.count,
                      .token_begin = static_cast<std::int32_t>(static_cast<std::int64_t>(qkv.size()) / stride),
                      .blocks = world_.table(p.sequence)});
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
    if (write) attention_->write(pool_, 1, {qkv.data() + qw, stride}, {qkv.data() + qw + kw, stride});
    attention_->run(pool_, 1, {qkv.data(), stride}, {out.data(), qw});
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
  std::unique_ptr<Attention> attention_;
  std::vector<Floats> out_;
};

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

bool same_row(const World& world, const Floats& a, const Floats& b, std::int32_t position) {
  const std::size_t at = static_cast<std::size_t>(position) * world.q_width();
  return std::memcmp(a.data() + at, b.data() + at, world.q_width() * sizeof(float)) == 0;
}

// Exact attention in f64 on the f16 keys and values, one row and head.
std::vector<double> reference(World& world, std::size_t sequence, std::int32_t position, std::int32_t head) {
  const auto dim = static_cast<std::size_t>(world.shape().head_dim);
  const std::size_t kv_head = static_cast<std::size_t>(head / (world.shape().heads / world.shape().kv_heads));
  const float* const q =
      &world.q(sequence)[static_cast<std::size_t>(position) * world.q_width() + static_cast<std::size_t>(head) * dim];
  const auto half = [](float x) { return static_cast<double>(half_to_float(float_to_half(x))); };
  std::vector<double> p;
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t t = 0; t <= static_cast<std::size_t>(position); ++t) {
    double s = 0;
    for (std::size_t d = 0; d < dim; ++d)
      s += static_cast<double>(q[d]) * half(world.k(sequence)[t * world.kv_width() + kv_head * dim + d]);
    p.push_back(s / std::sqrt(static_cast<double>(dim)));
    largest = std::max(largest, p.back());
  }
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - largest);
  std::vector<double> o(dim);
  for (std::size_t t = 0; t < p.size(); ++t) {
    for (std::size_t d = 0; d < dim; ++d) o[d] += p[t] / sum * half(world.v(sequence)[t * world.kv_width() + kv_head * dim + d]);
  }
  return o;
}

// rms of the error by rms of the result, over some rows.
double relative_error(World& world, const Floats& out, const std::vector<std::int32_t>& positions) {
  double errors = 0;
  double squares = 0;
  for (const std::int32_t p : positions) {
    for (std::int32_t h = 0; h < world.shape().heads; ++h) {
      const std::vector<double> expected = reference(world, 0, p, h);
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

class AttentionOf : public testing::TestWithParam<std::size_t> {
 protected:
  Isa isa() const { return isas()[GetParam()]; }
};
INSTANTIATE_TEST_SUITE_P(Attention, AttentionOf, testing::Range(std::size_t{0}, isas().size()),
                         [](const testing::TestParamInfo<std::size_t>& tested) { return isas()[tested.param].name; });

TEST_P(AttentionOf, EveryChunkingAndThreadCountGivesTheSameBits) {
  const bool quick = isa().name == "portable";
  for (const Shape shape : {Shape{9, 3, 64}, Shape{8, 1, 128}}) {
    const std::int32_t n = quick || shape.head_dim > 64 ? 557 : 1337;
    World world(shape, {n});
    Runner whole(world, isa(), 1);
    whole.step({{0, 0, n}});
    EXPECT_TRUE(std::none_of(whole.out(0).begin(), whole.out(0).end(), [](float x) { return std::isnan(x); }));
    for (int threads = 1; threads <= 4; ++threads) {
      for (const std::int32_t chunk : {1, 3, 4, 7, 8, 64, 300, 512, 1337}) {
        if (chunk > n || (chunk < 64 && (quick || threads != 2))) continue;
        Runner chunked(world, isa(), threads);
        for (std::int32_t p = 0; p < n; p += chunk) chunked.step({{0, p, std::min(chunk, n - p)}});
        EXPECT_TRUE(same_bits(chunked.out(0), whole.out(0)))
            << isa().name << ' ' << shape.head_dim << " chunk " << chunk << " threads " << threads;
      }
    }
  }
}

TEST_P(AttentionOf, ABatchGivesEachSequenceItsBitsAlone) {
  std::vector<std::int32_t> lengths = {1337, 1, 16, 33, 511, 512, 513, 600, 40, 1025};
  if (isa().name == "portable") lengths = {1, 16, 33, 513, 40};
  World world({9, 3, 64}, lengths);
  std::vector<Floats> alone;
  Runner single(world, isa(), 1);
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    single.step({{s, 0, lengths[s]}});
    alone.push_back(single.out(s));
  }
  // All prompts but their last tokens in two steps, one of them of mixed chunks, then decode and verify rows together.
  for (const int threads : {1, 2, 3}) {
    Runner together(world, isa(), threads);
    std::vector<Piece> first;
    std::vector<Piece> second;
    std::vector<Piece> third;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      const std::int32_t window = std::min(lengths[s], static_cast<std::int32_t>(1 + s % 5));
      const std::int32_t prompt = lengths[s] - window;
      if (prompt / 3 > 0) first.push_back({s, 0, prompt / 3});
      if (prompt - prompt / 3 > 0) second.push_back({s, prompt / 3, prompt - prompt / 3});
      third.push_back({s, prompt, window});
    }
    together.step(first);
    together.step(second);
    std::reverse(third.begin(), third.end());
    together.step(third);
    for (std::size_t s = 0; s < lengths.size(); ++s)
      EXPECT_TRUE(same_bits(together.out(s), alone[s])) << isa().name << ' ' << s << ' ' << threads;
  }
}

TEST_P(AttentionOf, IsCloseToExactArithmetic) {
  struct Case {
    Shape shape;
    float deviation;
    double bound;
  };
  const std::vector<Case> cases = {{{9, 3, 64}, 1.5F, 4e-5}, {{9, 3, 64}, 10.0F, 8e-5},  {{4, 1, 32}, 1.5F, 4e-5},
                                   {{5, 1, 96}, 1.5F, 4e-5}, {{16, 1, 128}, 1.5F, 4e-5}, {{8, 1, 256}, 1.5F, 4e-5},
                                   {{1, 1, 64}, 1.5F, 4e-5}};
  for (const Case& c : cases) {
    World world(c.shape, {700}, c.deviation);
    Runner runner(world, isa(), 2);
    runner.step({{0, 0, 700}});
    const double error = relative_error(world, runner.out(0), {0, 1, 14, 15, 16, 31, 32, 100, 510, 511, 512, 513, 640, 699});
    EXPECT_LT(error, c.bound) << isa().name << ' ' << c.shape.heads << '/' << c.shape.kv_heads << '/' << c.shape.head_dim;
    RecordProperty("error_" + std::to_string(c.shape.heads) + "_" + std::to_string(c.shape.head_dim), std::to_string(error));
  }
}

TEST_P(AttentionOf, DecodeAtEveryEdgeEqualsThePromptsRow) {
  for (const std::int32_t group : {1, 3, 4, 5, 8, 16, 17}) {
    for (const std::int32_t dim : kAttentionHeadDims) {
      if (dim != 64 && group != (isa().name == "portable" ? 1 : 3) && group != 16) continue;
      if (isa().name == "portable" && group > 8) continue;
      World world({group * 2, 2, dim}, {1026});
      Runner whole(world, isa(), 1);
      whole.step({{0, 0, 1026}});
      Runner decode(world, isa(), 2);  // the blocks are written
      for (const std::int32_t length : {1, 2, 15, 16, 17, 31, 32, 33, 511, 512, 513, 1023, 1024, 1025, 1026}) {
        decode.step({{0, length - 1, 1}}, false);
        EXPECT_TRUE(same_row(world, decode.out(0), whole.out(0), length - 1))
            << isa().name << ' ' << group << ' ' << dim << ' ' << length;
      }
    }
  }
}

// What is stored past the last token, of whatever last used the block, does not matter, and neither does what a failed row wrote.
TEST_P(AttentionOf, NanStaysInItsOwnRowAndSequence) {
  const std::vector<std::int32_t> lengths = {700, 300};
  World good({9, 3, 64}, lengths);
  Runner expected(good, isa(), 1);
  expected.step({{0, 0, 700}, {1, 0, 300}});
  const struct {
    const char* name;
    Floats& (World::*of)(std::size_t);
    bool reported;
  } kinds[] = {{"q", &World::q, false}, {"k", &World::k, true}, {"v", &World::v, true}};
  for (const auto& kind : kinds) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1e30F}) {
      World world({9, 3, 64}, lengths);
      Floats& values = (world.*kind.of)(0);
      values[values.size() / 700 * 650 + 5] = bad;  // token 650 of the first sequence
      Runner runner(world, isa(), 2);
      runner.step({{0, 0, 700}, {1, 0, 300}});
      EXPECT_TRUE(same_bits(runner.out(1), expected.out(1))) << isa().name << kind.name << bad;
      for (std::int32_t p = 0; p < 650; ++p)
        ASSERT_TRUE(same_row(world, runner.out(0), expected.out(0), p)) << isa().name << kind.name << p;
      EXPECT_EQ(runner.attention().row_failed(0), kind.reported) << isa().name << kind.name << bad;
      EXPECT_FALSE(runner.attention().row_failed(1));
      if (kind.reported || bad == -1e30F) continue;
      EXPECT_TRUE(std::isnan(runner.out(0)[650 * world.q_width() + 5])) << isa().name << bad;
      EXPECT_TRUE(same_row(world, runner.out(0), expected.out(0), 651));
    }
  }
}

TEST_P(AttentionOf, ZeroAndHugeScoresStayFinite) {
  World world({3, 1, 64}, {600});
  std::fill(world.q(0).begin(), world.q(0).begin() + 300 * static_cast<std::ptrdiff_t>(world.q_width()), 0.0F);
  std::fill(world.q(0).begin() + 300 * static_cast<std::ptrdiff_t>(world.q_width()), world.q(0).end(), 1e6F);
  Runner runner(world, isa(), 2);
  runner.step({{0, 0, 600}});
  EXPECT_TRUE(std::all_of(runner.out(0).begin(), runner.out(0).end(), [](float x) { return std::isfinite(x); }));
}

TEST_P(AttentionOf, RefusesHeadSizesByName) {
  Pool pool({.threads = 1});
  for (const std::int32_t dim : {16, 48, 80, 512}) {
    const auto made = Attention::create(
        {.layout = {.layers = 1, .kv_heads = 1, .head_dim = dim}, .heads = 1, .rows_max = 1, .tokens_max = 1, .context_max = 1},
        {isa().attention(dim), isa().kv_write}, pool);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(made.error().message.find(std::to_string(dim)), std::string::npos);
  }
}

TEST(Attention, PlainAvx512HasTheBitsOfTiles) {
  const std::vector<Isa> all = isas();
  if (all.size() < 3) return;  // nothing to compare on this machine
  for (const Shape shape : {Shape{9, 3, 64}, Shape{5, 1, 96}, Shape{16, 2, 128}, Shape{3, 1, 256}, Shape{6, 2, 32}}) {
    for (const float deviation : {1.5F, 10.0F, 1e-3F}) {
      World world(shape, {777}, deviation);
      for (std::size_t i = 0; i < world.v(0).size(); i += 3) world.v(0)[i] *= 1e-6F;  // subnormal halves
      Runner plain(world, all[1], 1);
      Runner tiles(world, all[2], 1);
      plain.step({{0, 0, 777}});
      tiles.step({{0, 0, 777}});
      EXPECT_TRUE(same_bits(plain.out(0), tiles.out(0))) << shape.heads << '/' << shape.head_dim << ' ' << deviation;
    }
  }
}

// Many steps of random make-up through one object: scratch, partials and counters carry nothing over.
TEST(Attention, RandomStepsGiveTheBitsOfWholePrompts) {
  const std::vector<std::int32_t> lengths = {1300, 900, 533, 64, 1100};
  for (const Isa& isa : isas()) {
    if (isa.name == "portable" && isas().size() > 1) continue;
    World world({8, 2, 64}, lengths);
    Runner whole(world, isa, 1);
    for (std::size_t s = 0; s < lengths.size(); ++s) whole.step({{s, 0, lengths[s]}});
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
      std::mt19937 rng(seed);
      Runner runner(world, isa, 1 + static_cast<int>(seed % 4));
      std::vector<std::int32_t> done(lengths.size());
      while (done != lengths) {
        std::vector<Piece> pieces;
        for (std::size_t s = 0; s < lengths.size(); ++s) {
          const std::int32_t left = lengths[s] - done[s];
          if (left == 0 || rng() % 3 == 0) continue;
          const std::int32_t sizes[] = {1, 1, 2, 5, 17, 100, 400};
          pieces.push_back({s, done[s], std::min(left, sizes[rng() % 7])});
          done[s] += pieces.back().count;
        }
        std::shuffle(pieces.begin(), pieces.end(), rng);
        if (!pieces.empty()) runner.step(pieces);
      }
      for (std::size_t s = 0; s < lengths.size(); ++s)
        EXPECT_TRUE(same_bits(runner.out(s), whole.out(s))) << isa.name << " seed " << seed << ' ' << s;
    }
  }
}

}  // namespace
}  // namespace linnet::cpu
