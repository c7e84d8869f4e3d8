#include "backends/cpu/kernels/attention.h"

#include <sys/mman.h>

#include <bit>

#include "backends/cpu/kernels/attention_test_data.h"

namespace linnet::cpu {
namespace {

INSTANTIATE_TEST_SUITE_P(Attention, AttentionOf, testing::Range(std::size_t{0}, attention_sets().size()), set_name);

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
  for (const KernelSet* const kernels : attention_sets()) {
    const KernelSet& set = *kernels;
    if (set.name == "portable" && attention_sets().size() > 1) continue;
    World world({8, 2, 64}, lengths);
    Runner whole(world, set, 1);
    for (std::size_t s = 0; s < lengths.size(); ++s) whole.step({{s, 0, lengths[s]}});
    for (std::uint32_t seed = 0; seed < 5; ++seed) {
      std::mt19937 rng(seed);
      Runner runner(world, set, 1 + static_cast<int>(seed % 4));
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
        EXPECT_TRUE(same_bits(runner.out(s), whole.out(s))) << set.name << " seed " << seed << ' ' << s;
    }
  }
}

}  // namespace
}  // namespace linnet::cpu
