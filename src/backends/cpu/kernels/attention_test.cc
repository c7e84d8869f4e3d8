#include "backends/cpu/kernels/attention.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/kernel_set.h"
#include "weights/half.h"

namespace linnet::cpu {
namespace {

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
  Runner(World& world, const KernelSet& set, int threads) : world_(world), pool_({.threads = threads}) {
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
    if (pieces.front().count == 1) {  // as a next layer would: the plan is as good as new
      const Floats once = std::exchange(out, Floats(out.size(), NAN));
      attention_->run(pool_, 1, {qkv.data(), stride}, {out.data(), qw});
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
  const KernelSet& set() const { return *runnable_kernel_sets()[GetParam()]; }
};
INSTANTIATE_TEST_SUITE_P(Attention, AttentionOf, testing::Range(std::size_t{0}, runnable_kernel_sets().size()),
                         [](const testing::TestParamInfo<std::size_t>& tested) {
                           return std::string(runnable_kernel_sets()[tested.param]->name);
                         });

TEST_P(AttentionOf, EveryChunkingAndThreadCountGivesTheSameBits) {
  const bool quick = set().name != "amx";
  for (const Shape shape : {Shape{9, 3, 64}, Shape{8, 1, 128}, Shape{2, 2, 64}}) {
    if (set().name == "portable" && shape.head_dim > 64) continue;  // slow
    const std::int32_t n = quick || shape.heads != 9 ? 557 : 1337;
    World world(shape, {n});
    Runner whole(world, set(), 1);
    whole.step({{0, 0, n}});
    EXPECT_TRUE(std::none_of(whole.out(0).begin(), whole.out(0).end(), [](float x) { return std::isnan(x); }));
    for (int threads = 1; threads <= 4; ++threads) {
      for (const std::int32_t chunk : {1, 3, 4, 7, 8, 33, 64, 300, 512, 1337}) {
        if (chunk > n || (chunk < 7 && quick) || (chunk < 64 && threads != (chunk < 7 ? 1 : 2))) continue;
        Runner chunked(world, set(), threads);
        for (std::int32_t p = 0; p < n; p += chunk) chunked.step({{0, p, std::min(chunk, n - p)}});
        EXPECT_TRUE(same_bits(chunked.out(0), whole.out(0)))
            << set().name << ' ' << shape.head_dim << " chunk " << chunk << " threads " << threads;
      }
    }
  }
}

TEST_P(AttentionOf, ABatchGivesEachSequenceItsBitsAlone) {
  std::vector<std::int32_t> lengths = {1337, 1, 16, 33, 511, 512, 513, 600, 40, 1025};
  if (set().name == "portable") lengths = {1, 16, 33, 513, 40};
  World world({9, 3, 64}, lengths);
  std::vector<Floats> alone;
  Runner single(world, set(), 1);
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    single.step({{s, 0, lengths[s]}});
    alone.push_back(single.out(s));
  }
  // All prompts but their last tokens in two steps, one of them of mixed chunks, then decode and verify rows together.
  for (const int threads : {1, 2, 3}) {
    Runner together(world, set(), threads);
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
      EXPECT_TRUE(same_bits(together.out(s), alone[s])) << set().name << ' ' << s << ' ' << threads;
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
    World world(c.shape, {640}, c.deviation);
    Runner runner(world, set(), 2);
    runner.step({{0, 0, 640}});
    const double error = relative_error(world, runner.out(0), {0, 1, 14, 15, 16, 31, 32, 100, 510, 511, 512, 513, 639});
    EXPECT_LT(error, c.bound) << set().name << ' ' << c.shape.heads << '/' << c.shape.kv_heads << '/' << c.shape.head_dim;
    RecordProperty("error_" + std::to_string(c.shape.heads) + "_" + std::to_string(c.shape.head_dim), std::to_string(error));
  }
}

TEST_P(AttentionOf, DecodeAtEveryEdgeEqualsThePromptsRow) {
  const std::int32_t n = set().name == "amx" ? 1026 : 514;
  for (const std::int32_t group : {1, 3, 4, 5, 8, 16, 17}) {
    for (const std::int32_t dim : kAttentionHeadDims) {
      if (dim != 64 && group != (set().name == "portable" ? 1 : 3) && group != 16) continue;
      if (set().name != "amx" && (group == 4 || group == 8)) continue;
      World world({group * 2, 2, dim}, {n});
      Runner whole(world, set(), 1);
      whole.step({{0, 0, n}});
      Runner decode(world, set(), 2);  // the blocks are written
      for (const std::int32_t length : {1, 2, 15, 16, 17, 31, 32, 33, 511, 512, 513, 1023, 1024, 1025, 1026}) {
        if (length > n) continue;
        decode.step({{0, length - 1, 1}}, false);
        EXPECT_TRUE(same_row(world, decode.out(0), whole.out(0), length - 1))
            << set().name << ' ' << group << ' ' << dim << ' ' << length;
      }
    }
  }
}

// What is stored past the last token, of whatever last used the block, does not matter, and neither does what a failed row wrote.
TEST_P(AttentionOf, NanStaysInItsOwnRowAndSequence) {
  const std::vector<std::int32_t> lengths = {600, 90};
  World good({6, 2, 32}, lengths);
  Runner expected(good, set(), 1);
  expected.step({{0, 0, 600}, {1, 0, 90}});
  const struct {
    const char* name;
    Floats& (World::*of)(std::size_t);
    bool reported;
  } kinds[] = {{"q", &World::q, false}, {"k", &World::k, true}, {"v", &World::v, true}};
  for (const auto& kind : kinds) {
    for (const float bad : {NAN, std::bit_cast<float>(0x7fffffffU), INFINITY, -1e30F}) {
      World world({6, 2, 32}, lengths);
      Floats& values = (world.*kind.of)(0);
      values[values.size() / 600 * 530 + 5] = bad;  // token 530 of the first sequence
      Runner runner(world, set(), 2);
      runner.step({{0, 0, 600}, {1, 0, 90}});
      EXPECT_TRUE(same_bits(runner.out(1), expected.out(1))) << set().name << kind.name << bad;
      for (std::int32_t p = 0; p < 530; ++p)
        ASSERT_TRUE(same_row(world, runner.out(0), expected.out(0), p)) << set().name << kind.name << p;
      EXPECT_EQ(runner.attention().row_failed(0), kind.reported) << set().name << kind.name << bad;
      EXPECT_FALSE(runner.attention().row_failed(1));
      if (kind.reported || bad == -1e30F) continue;
      EXPECT_TRUE(std::isnan(runner.out(0)[530 * world.q_width() + 5])) << set().name << bad;
      EXPECT_TRUE(same_row(world, runner.out(0), expected.out(0), 531));
    }
  }
}

TEST_P(AttentionOf, ZeroAndHugeScoresStayFinite) {
  World world({3, 1, 64}, {600});
  std::fill(world.q(0).begin(), world.q(0).begin() + 300 * static_cast<std::ptrdiff_t>(world.q_width()), 0.0F);
  std::fill(world.q(0).begin() + 300 * static_cast<std::ptrdiff_t>(world.q_width()), world.q(0).end(), 1e6F);
  Runner runner(world, set(), 2);
  runner.step({{0, 0, 600}});
  EXPECT_TRUE(std::all_of(runner.out(0).begin(), runner.out(0).end(), [](float x) { return std::isfinite(x); }));
}

TEST_P(AttentionOf, RefusesHeadSizesByName) {
  Pool pool({.threads = 1});
  for (const std::int32_t dim : {16, 48, 80, 512}) {
    const auto made = Attention::create(
        {.layout = {.layers = 1, .kv_heads = 1, .head_dim = dim}, .heads = 1, .rows_max = 1, .tokens_max = 1, .context_max = 1},
        {set().attention(dim), set().kv_write}, pool);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(made.error().message.find(std::to_string(dim)), std::string::npos);
  }
}

// Memory between two pages that fault when they are touched; what is handed out ends at the second.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes) : inner_((bytes + kPage - 1) / kPage * kPage) {
    base_ =
        static_cast<std::byte*>(mmap(nullptr, inner_ + 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(base_, kPage, PROT_NONE), 0);
    EXPECT_EQ(mprotect(base_ + kPage + inner_, kPage, PROT_NONE), 0);
    end_ = base_ + kPage + inner_;
    begin_ = end_ - bytes;
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(base_, inner_ + 2 * kPage); }
  std::byte* begin() const { return begin_; }

 private:
  static constexpr std::size_t kPage = 4096;
  std::size_t inner_;
  std::byte* base_;
  std::byte* begin_;
  std::byte* end_;
};

TEST_P(AttentionOf, TouchesNothingBeyondItsMemory) {
  for (const std::int32_t dim : kAttentionHeadDims) {
    for (const std::int32_t group : {1, 3, 17}) {
      for (const std::int32_t tokens : {1, 6, 33, 64}) {
        const KvLayout layout{.layers = 1, .kv_heads = 1, .head_dim = dim};
        const std::size_t row_bytes = static_cast<std::size_t>(group * dim) * sizeof(float);
        const Guarded first(layout.block_bytes());
        const Guarded second(layout.block_bytes());
        const Guarded q(row_bytes * static_cast<std::size_t>(tokens));
        const Guarded out(row_bytes * static_cast<std::size_t>(tokens));
        const Guarded kv(static_cast<std::size_t>(tokens * dim) * sizeof(float));
        const AttentionKernel kernel = set().attention(dim);
        const std::size_t scratch_bytes = (kernel.scratch_bytes(group) + 63) / 64 * 64;
        const Guarded scratch(scratch_bytes);
        std::byte* const blocks[] = {first.begin(), second.begin()};
        const auto* const rows = reinterpret_cast<const float*>(kv.begin());
        EXPECT_TRUE(set().kv_write({.k = rows,
                                    .k_stride = dim,
                                    .v = rows,
                                    .v_stride = dim,
                                    .blocks = blocks,
                                    .kv_heads = 1,
                                    .head_dim = dim,
                                    .position = 0,
                                    .count = tokens}));
        kernel.run({.q = reinterpret_cast<const float*>(q.begin()),
                    .q_stride = std::int64_t{group} * dim,
                    .out = reinterpret_cast<float*>(out.begin()),
                    .out_stride = std::int64_t{group} * dim,
                    .blocks = blocks,
                    .position = 0,
                    .rows = std::min(tokens, attention_task_rows_max(dim, group) / group),
                    .group = group,
                    .scale = 1,
                    .split_begin = 0,
                    .split_end = 1},
                   scratch.begin());
        EXPECT_EQ(*reinterpret_cast<const float*>(out.begin()), 0.0F);
      }
    }
  }
}

TEST(Attention, PlainAvx512HasTheBitsOfTiles) {
  const Result<const KernelSet*> avx512 = choose_kernel_set("avx512");
  const Result<const KernelSet*> amx = choose_kernel_set("amx");
  if (!avx512.ok() || !amx.ok()) return;  // nothing to compare on this machine
  for (const Shape shape : {Shape{9, 3, 64}, Shape{5, 1, 96}, Shape{16, 2, 128}, Shape{3, 1, 256}, Shape{6, 2, 32}}) {
    for (const float deviation : {1.5F, 10.0F, 1e-3F}) {
      World world(shape, {777}, deviation);
      for (std::size_t i = 0; i < world.v(0).size(); i += 3) world.v(0)[i] *= 1e-6F;  // subnormal halves
      Runner plain(world, **avx512, 1);
      Runner tiles(world, **amx, 1);
      plain.step({{0, 0, 777}});
      tiles.step({{0, 0, 777}});
      EXPECT_TRUE(same_bits(plain.out(0), tiles.out(0))) << shape.heads << '/' << shape.head_dim << ' ' << deviation;
    }
  }
}

// Many steps of random make-up through one object: scratch, partials and counters carry nothing over.
TEST(Attention, RandomStepsGiveTheBitsOfWholePrompts) {
  const std::vector<std::int32_t> lengths = {1300, 900, 533, 64, 1100};
  for (const KernelSet* const set : runnable_kernel_sets()) {
    if (set->name == "portable" && runnable_kernel_sets().size() > 1) continue;
    World world({8, 2, 64}, lengths);
    Runner whole(world, *set, 1);
    for (std::size_t s = 0; s < lengths.size(); ++s) whole.step({{s, 0, lengths[s]}});
    for (std::uint32_t seed = 0; seed < 5; ++seed) {
      std::mt19937 rng(seed);
      Runner runner(world, *set, 1 + static_cast<int>(seed % 4));
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
        EXPECT_TRUE(same_bits(runner.out(s), whole.out(s))) << set->name << " seed " << seed << ' ' << s;
    }
  }
}

}  // namespace
}  // namespace linnet::cpu
