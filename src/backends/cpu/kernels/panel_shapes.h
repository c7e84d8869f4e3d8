// The quantized formats that kernels are written for, as template arguments: all that panels can be but for the type of scales,
// which kernels look up as they go.
#pragma once

#include <cstddef>
#include <utility>

#include "backends/cpu/kernels/panels.h"
#include "base/check.h"

namespace linnet::cpu {
namespace {  // a copy in each file: none may end up in code that other machines run

constexpr PanelFormat kPanelShapes[] = {
    {Codes::kNibbles, 32, false}, {Codes::kBytes, 16, false},  {Codes::kBytes, 32, false},
    {Codes::kNibbles, 32, true},  {Codes::kNibbles, 64, true}, {Codes::kNibbles, 128, true},
    {Codes::kBytes, 32, true},    {Codes::kBytes, 64, true},   {Codes::kBytes, 128, true},
};

// Calls f.operator()<shape>() for the shape of `format`.
template <class F>
void with_panel_shape(PanelFormat format, F&& f) {
  format.numbers = PanelFormat{}.numbers;
  const bool known = [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return ((format == kPanelShapes[kIndex] && (f.template operator()<kPanelShapes[kIndex]>(), true)) || ...);
  }(std::make_index_sequence<std::size(kPanelShapes)>());
  CHECK(known);
}

}  // namespace
}  // namespace linnet::cpu
