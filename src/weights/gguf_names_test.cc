#include "weights/gguf_names.h"

#include <gtest/gtest.h>

namespace linnet {
namespace {

TEST(GgufNames, BothWays) {
  struct Case {
    const char* hugging_face;
    const char* gguf;
  };
  const Case cases[] = {
      {"model.embed_tokens.weight", "token_embd.weight"},
      {"model.norm.weight", "output_norm.weight"},
      {"lm_head.weight", "output.weight"},
      {"lm_head.bias", "output.bias"},
      {"model.layers.0.input_layernorm.weight", "blk.0.attn_norm.weight"},
      {"model.layers.3.self_attn.q_proj.weight", "blk.3.attn_q.weight"},
      {"model.layers.3.self_attn.q_proj.bias", "blk.3.attn_q.bias"},
      {"model.layers.10.self_attn.k_proj.weight", "blk.10.attn_k.weight"},
      {"model.layers.10.self_attn.v_proj.weight", "blk.10.attn_v.weight"},
      {"model.layers.999.self_attn.o_proj.weight", "blk.999.attn_output.weight"},
      {"model.layers.1.post_attention_layernorm.weight", "blk.1.ffn_norm.weight"},
      {"model.layers.1.mlp.gate_proj.weight", "blk.1.ffn_gate.weight"},
      {"model.layers.1.mlp.up_proj.weight", "blk.1.ffn_up.weight"},
      {"model.layers.1.mlp.down_proj.weight", "blk.1.ffn_down.weight"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(gguf_tensor_name(c.hugging_face), c.gguf);
    EXPECT_EQ(hugging_face_tensor_name(c.gguf), c.hugging_face);
  }
}

TEST(GgufNames, UnknownNamesHaveNoCounterpart) {
  for (const char* name : {"",
                           ".weight",
                           "blk.",
                           "blk.0",
                           "blk.0.attn_q",
                           "blk.0.attn_q.scale",
                           "blk..attn_q.weight",
                           "blk.-1.attn_q.weight",
                           "blk.01.attn_q.weight",
                           "blk.+1.attn_q.weight",
                           "blk.1x.attn_q.weight",
                           "blk.99999999999.attn_q.weight",
                           "blk.0.ffn_gate_inp.weight",
                           "blk.0.0.attn_q.weight",
                           "blk.0.token_embd.weight",
                           "model.norm.weight",
                           "output.weights",
                           "output.weighX",
                           "xyz.0.attn_q.weight",
                           "blk.attn_q.weight"}) {
    EXPECT_EQ(hugging_face_tensor_name(name), std::nullopt) << name;
  }
  for (const char* name : {"", "blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj", "model.layers.a.self_attn.q_proj.weight",
                           "model.layers.00.self_attn.q_proj.weight", "model.layers.0.self_attn.q_norm.weight"}) {
    EXPECT_EQ(gguf_tensor_name(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace linnet
