// Sliding windows, soft caps and other factors of q . k.
#include "backends/cpu/kernels/attention_test_data.h"

namespace linnet::cpu {
namespace {

class AttentionWindow : public AttentionOf {};
INSTANTIATE_TEST_SUITE_P(Attention, AttentionWindow, testing::Range(std::size_t{0}, attention_sets().size()), set_name);

TEST_P(AttentionWindow, IsCloseToExactArithmetic) {
  struct Case {
    Shape shape;
    AttentionCall call;
    float deviation = 1.5F;
  };
  for (const Case& c :
       {Case{{4, 2, 64}, {.window = 1}}, Case{{9, 3, 64}, {.window = 2}}, Case{{4, 1, 64}, {.window = 33}},
        Case{{4, 1, 256}, {.window = 512}}, Case{{4, 2, 96}, {.window = 513}}, Case{{5, 1, 32}, {.window = 640}},
        Case{{4, 1, 64}, {.soft_cap = 5.0F}}, Case{{4, 1, 64}, {.soft_cap = 50.0F}, 30.0F},
        Case{{8, 1, 128}, {.window = 100, .soft_cap = 2.0F, .scale = 0.5F}}, Case{{17, 1, 64}, {.scale = 0.01F}}}) {
    World world(c.shape, {640}, c.deviation);
    Runner runner(world, set(), 2, c.call);
    runner.step({{0, 0, 300}});
    runner.step({{0, 300, 340}});
    const double error =
        relative_error(world, runner.out(0), {0, 1, 15, 31, 32, 33, 100, 299, 300, 511, 512, 513, 600, 639}, c.call);
    EXPECT_LT(error, 8e-5) << set().name << ' ' << c.shape.head_dim << " window " << c.call.window << " cap " << c.call.soft_cap;
  }
}

// Keys that no row of a step sees any more are NaN here: nothing reads them.
TEST_P(AttentionWindow, EveryChunkingAndThreadCountGivesTheSameBits) {
  const std::int32_t n = set().name == "portable" ? 570 : 1101;
  for (const AttentionCall call : {AttentionCall{.window = 1}, AttentionCall{.window = 40, .soft_cap = 20.0F},
                                   AttentionCall{.window = 512}, AttentionCall{.window = 700, .scale = 0.2F}}) {
    for (const Shape shape : {Shape{6, 2, 64}, Shape{4, 1, 96}}) {
      if (set().name == "portable" && shape.head_dim != 64) continue;  // slow
      World world(shape, {n});
      Runner whole(world, set(), 1, call);
      whole.step({{0, 0, n}});
      for (const auto& [chunk, threads] : {std::pair{1, 1}, {5, 1}, {33, 3}, {64, 4}, {300, 2}, {n, 4}}) {
        if (chunk < 33 && set().name == "portable") continue;
        Runner chunked(world, set(), threads, call);
        for (std::int32_t p = 0; p < n; p += chunk) chunked.step({{0, p, std::min(chunk, n - p)}});
        EXPECT_TRUE(same_bits(chunked.out(0), whole.out(0)))
            << set().name << ' ' << shape.head_dim << " window " << call.window << " chunk " << chunk << " threads " << threads;
      }
    }
  }
}

TEST_P(AttentionWindow, ThatHoldsEverythingIsNone) {
  World world({6, 2, 64}, {530});
  Runner all(world, set(), 2);
  Runner windowed(world, set(), 2, {.window = 530});
  all.step({{0, 0, 530}});
  windowed.step({{0, 0, 530}});
  EXPECT_TRUE(same_bits(all.out(0), windowed.out(0)));
}

TEST_P(AttentionWindow, ABatchGivesEachSequenceItsBitsAlone) {
  const std::vector<std::int32_t> lengths = {700, 1, 40, 513, 600};
  const AttentionCall call{.window = 96, .soft_cap = 30.0F};
  World world({6, 2, 64}, lengths);
  Runner single(world, set(), 1, call);
  for (std::size_t s = 0; s < lengths.size(); ++s) single.step({{s, 0, lengths[s]}});
  Runner together(world, set(), 3, call);
  std::vector<Piece> prompts;
  std::vector<Piece> ends;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    const std::int32_t window = std::min(lengths[s], static_cast<std::int32_t>(1 + s));
    if (lengths[s] > window) prompts.push_back({s, 0, lengths[s] - window});
    ends.push_back({s, lengths[s] - window, window});
  }
  together.step(prompts);
  together.step(ends);
  for (std::size_t s = 0; s < lengths.size(); ++s)
    EXPECT_TRUE(same_bits(together.out(s), single.out(s))) << set().name << ' ' << s;
}

TEST(AttentionWindows, PlainAvx512HasTheBitsOfTiles) {
  const Result<const KernelSet*> avx512 = choose_kernel_set("avx512");
  const Result<const KernelSet*> amx = choose_kernel_set("amx");
  if (!avx512.ok() || !amx.ok()) return;  // nothing to compare on this machine
  for (const Shape shape : {Shape{9, 3, 64}, Shape{5, 1, 96}, Shape{3, 1, 256}}) {
    for (const AttentionCall call :
         {AttentionCall{.window = 77}, AttentionCall{.soft_cap = 3.0F}, AttentionCall{.window = 600, .soft_cap = 50.0F}}) {
      World world(shape, {777}, 4.0F);
      Runner plain(world, **avx512, 1, call);
      Runner tiles(world, **amx, 1, call);
      plain.step({{0, 0, 777}});
      tiles.step({{0, 0, 777}});
      EXPECT_TRUE(same_bits(plain.out(0), tiles.out(0))) << shape.head_dim << ' ' << call.window << ' ' << call.soft_cap;
    }
  }
}

// Layers of two kinds in one step, as Gemma has them: each has its own cut, and neither disturbs the other.
TEST(AttentionWindows, LayersOfTwoWindowsShareAStep) {
  const KernelSet& set = *runnable_kernel_sets().front();
  World world({6, 2, 64}, {900});
  Runner full(world, set, 2);
  Runner narrow(world, set, 2, {.window = 64});
  full.step({{0, 0, 900}});
  narrow.step({{0, 0, 900}});
  Pool pool({.threads = 2});
  Attention attention =
      std::move(Attention::create({.layout = world.layout(), .heads = 6, .rows_max = 1, .tokens_max = 900, .context_max = 900},
                                  {set.attention(64), set.kv_write}, pool))
          .value();
  const std::vector<BlockId> table = world.table(0, 0);
  const AttentionRow row{.position = 0, .count = 900, .token_begin = 0, .blocks = table};
  pool.begin_step();
  attention.plan({&row, 1}, world.pool().blocks());
  for (int layer = 0; layer < 6; ++layer) {
    const bool is_full = layer % 3 == 2;
    Floats out(world.q(0).size());
    attention.run(pool, {.layer = 1, .window = is_full ? 0 : 64}, {world.q(0).data(), 6 * 64}, {out.data(), 6 * 64});
    EXPECT_TRUE(same_bits(out, is_full ? full.out(0) : narrow.out(0))) << layer;
  }
  pool.end_step();
}

}  // namespace
}  // namespace linnet::cpu
