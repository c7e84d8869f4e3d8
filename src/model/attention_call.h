// What a layer tells a backend's attention beside q, k and v.
#pragma once

#include <cstdint>

namespace linnet {

struct AttentionCall {
  std::int32_t layer = 0;   // whose keys and values are meant
  std::int32_t window = 0;  // position p sees keys p - window + 1 .. p; 0: all up to p
  float soft_cap = 0;       // scores s become cap * tanh(s / cap) (Gemma 2); 0: they stay
  float scale = 0;          // factor of q . k; 0: 1 / sqrt(head_dim)
};

}  // namespace linnet
