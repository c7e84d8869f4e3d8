// No step allocates once the engine is warm: this binary counts every operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#include "engine/engine_rig.h"

namespace {

std::atomic<std::uint64_t> allocations = 0;

void* counted(std::size_t size) {
  ++allocations;
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace linnet {
namespace {

std::uint64_t allocations_of_steps(EngineRig& rig) {
  const std::uint64_t before = allocations;
  while (rig.engine().step()) {
  }
  return allocations - before;
}

TEST(Allocation, TheCounterCounts) {
  const std::uint64_t before = allocations;
  auto* made = new std::vector<int>(3);
  EXPECT_EQ(allocations - before, 2U);
  delete made;
}

void expect_no_allocations(EngineRig& rig) {
  for (int round = 0; round < 4; ++round) {
    std::vector<RequestHandle> handles;
    for (std::int32_t index = 0; index < 8; ++index) {
      handles.push_back(
          rig.submit({.prompt = prompt_of(100 + 150 * index, round), .max_tokens = 50 + 10 * index, .trace_id = "traced"}));
    }
    rig.engine().step();  // admission makes the sequences
    const std::uint64_t made = allocations_of_steps(rig);
    if (round > 0) {
      EXPECT_EQ(made, 0U) << "round " << round;
    }
  }
}

// Chunked prefill, decode, and requests that end at different steps.
TEST(Allocation, StepsOfAdmittedRequestsAllocateNothing) {
  for (const bool overlaps : {false, true}) {
    FakeExecutorOptions fake;
    fake.info.overlaps = overlaps;
    EngineRig rig({}, fake);
    expect_no_allocations(rig);
  }
}

// Logprobs, penalties and biases of a row, several answers to one prompt, and a deadline that does not come.
TEST(Allocation, StepsOfEveryKindOfRowAllocateNothing) {
  EngineRig rig;
  for (int round = 0; round < 4; ++round) {
    std::vector<std::vector<RequestHandle>> handles;
    for (std::int32_t index = 0; index < 4; ++index) {
      Request request{.prompt = prompt_of(700 + 150 * index, round), .max_tokens = 40, .choices = 1 + index};
      request.sampling = {
          .seed = 5, .repetition_penalty = 1.2F, .frequency_penalty = 0.5F, .min_tokens = 3, .logprobs = 5 * index};
      request.logit_bias = {{.token = TokenId{4}, .bias = 2}};
      request.end_tokens = {TokenId{999}};
      request.time_limit = std::chrono::hours(1);
      handles.push_back(rig.submit_choices(request));
    }
    rig.engine().step();  // admission makes the sequences
    const std::uint64_t made = allocations_of_steps(rig);
    if (round > 0) {
      EXPECT_EQ(made, 0U) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace linnet
