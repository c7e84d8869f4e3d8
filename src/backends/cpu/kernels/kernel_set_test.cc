#include "backends/cpu/kernels/kernel_set.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace linnet::cpu {
namespace {

TEST(KernelSet, PortableRunsEverywhereAndIsTheLastChoice) {
  const auto sets = runnable_kernel_sets();
  ASSERT_FALSE(sets.empty());
  EXPECT_EQ(sets.back()->name, "portable");
  EXPECT_EQ(choose_kernel_set("").value(), sets.front());
  for (const KernelSet* const set : sets) EXPECT_EQ(choose_kernel_set(set->name).value(), set);
}

TEST(KernelSet, UnknownNamesAreRefusedWithThoseThatRun) {
  for (const char* const name : {"AMX", "sse9", "portable ", "neon"}) {
    const auto set = choose_kernel_set(name);
    ASSERT_FALSE(set.ok()) << name;
    EXPECT_EQ(set.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(set.error().message.find(std::string("LINNET_ISA is '").append(name).append("'")), 0U);
    EXPECT_NE(set.error().message.find("portable"), std::string::npos);
    EXPECT_EQ(set.error().param, "LINNET_ISA");
  }
}

TEST(KernelSet, TheEnvironmentChooses) {
  ::setenv("LINNET_ISA", "portable", 1);
  EXPECT_EQ(kernel_set_of_environment().value()->name, "portable");
  ::setenv("LINNET_ISA", "mmx", 1);
  EXPECT_FALSE(kernel_set_of_environment().ok());
  ::unsetenv("LINNET_ISA");
  EXPECT_EQ(kernel_set_of_environment().value(), runnable_kernel_sets().front());
}

TEST(KernelSet, AllEntriesAreSet) {
  for (const KernelSet* const set : runnable_kernel_sets()) {
    EXPECT_TRUE(set->repack != nullptr && set->round_rows != nullptr && set->linear_quantized != nullptr &&
                set->linear_dense != nullptr);
    EXPECT_TRUE(set->rms_norm != nullptr && set->swiglu != nullptr && set->exponential != nullptr && set->rope != nullptr &&
                set->add != nullptr);
    EXPECT_TRUE(set->attention != nullptr && set->attention(64).run != nullptr && set->kv_write != nullptr &&
                set->probe != nullptr && set->probe().read != nullptr && set->probe().multiply != nullptr);
  }
}

}  // namespace
}  // namespace linnet::cpu
