#include "backends/cpu/kernels/kernel_set.h"

#include <cstdlib>
#include <string>

namespace linnet::cpu {

Result<const KernelSet*> choose_kernel_set(std::string_view wanted) {
  const auto sets = runnable_kernel_sets();
  if (wanted.empty()) return sets.front();
  std::string names;
  for (const KernelSet* const set : sets) {
    if (set->name == wanted) return set;
    names += (names.empty() ? "" : ", ") + std::string(set->name);
  }
  return Error{ErrorCode::kInvalidArgument, "LINNET_ISA is '" + std::string(wanted) + "', this machine runs: " + names,
               "LINNET_ISA"};
}

Result<const KernelSet*> kernel_set_of_environment() {
  const char* const value = std::getenv("LINNET_ISA");
  return choose_kernel_set(value == nullptr ? "" : value);
}

}  // namespace linnet::cpu
