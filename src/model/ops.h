// The words that model files are written in; each backend has a class of them.
#pragma once

#include <concepts>
#include <cstdint>
#include <tuple>

#include "model/attention_call.h"

namespace linnet {

// A backend's vocabulary. It holds the step under way, T tokens of one or more rows, S of them sampled; shapes below are what
// the words mean, a backend may keep its tensors in another layout between two words.
template <class Ops>
concept ModelOps = requires(Ops& ops, const typename Ops::Tensor& x, const typename Ops::Norm& norm,
                            const typename Ops::Linear& linear, const typename Ops::Linears& linears,
                            const typename Ops::Embedding& embedding, std::int32_t n, float eps, const AttentionCall& call) {
  { ops.embed(embedding) } -> std::same_as<typename Ops::Tensor>;        // [T, hidden]
  { ops.rms_norm(x, norm, eps) } -> std::same_as<typename Ops::Tensor>;  // as x
  // Three products of x: queries, keys, values.
  { ops.linears3(x, linears) } -> std::same_as<std::tuple<typename Ops::Tensor, typename Ops::Tensor, typename Ops::Tensor>>;
  { ops.rope(x, n) } -> std::same_as<typename Ops::Tensor>;                // as x, of n heads
  { ops.attention(x, x, x, call) } -> std::same_as<typename Ops::Tensor>;  // of queries, keys, values: as queries
  { ops.add_linear(x, x, linear) } -> std::same_as<typename Ops::Tensor>;  // the first x, with the second's product added
  { ops.swiglu(x, linears) } -> std::same_as<typename Ops::Tensor>;        // [T, intermediate]
  { ops.sampled(x) } -> std::same_as<typename Ops::Tensor>;                // [S, hidden]
  { ops.linear(x, linear) } -> std::same_as<typename Ops::Tensor>;
};

}  // namespace linnet
