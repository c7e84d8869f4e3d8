// Headers made to break a reader. Each must end in an error that says where, without reading outside of the file.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "weights/gguf.h"
#include "weights/gguf_config.h"
#include "weights/gguf_vocabulary.h"
#include "weights/testing/gguf_writer.h"
#include "weights/testing/is_error.h"
#include "weights/testing/tiny_llama.h"

namespace linnet {
namespace {

using testing::GgufWriter;
using testing::is_error;

constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kQ4_0 = 2;

// A copy in memory of exactly that size, so that a sanitizer sees every byte read beyond it.
std::vector<std::byte> exact(std::vector<std::byte> bytes) {
  bytes.shrink_to_fit();
  return bytes;
}

Result<GgufFile> parse(const std::vector<std::byte>& bytes) { return GgufFile::parse(bytes, "bad.gguf"); }

// Numbers one after another, each as wide as its type.
template <class... T>
std::vector<std::byte> raw(T... values) {
  std::vector<std::byte> bytes;
  const auto append = [&](auto value) {
    const std::size_t size = bytes.size();
    bytes.resize(size + sizeof value);
    std::memcpy(bytes.data() + size, &value, sizeof value);
  };
  (append(values), ...);
  return bytes;
}

constexpr std::uint32_t kMagic = 0x46554747;

std::vector<std::byte> header(std::uint64_t tensors, std::uint64_t keys) { return raw(kMagic, std::uint32_t{3}, tensors, keys); }

struct Hostile {
  const char* what;
  std::vector<std::byte> bytes;
  ErrorCode code;
  std::initializer_list<std::string_view> parts;
};

void expect_refused(const Hostile& hostile) {
  const std::vector<std::byte> bytes = exact(hostile.bytes);
  EXPECT_TRUE(is_error(parse(bytes), hostile.code, hostile.parts)) << hostile.what;
}

std::vector<std::byte> with_key(const std::function<void(GgufWriter&)>& add) {
  GgufWriter writer;
  add(writer);
  return writer.bytes();
}

std::vector<std::byte> with_tensor(const GgufWriter::RawTensor& tensor) {
  GgufWriter writer;
  writer.add_raw_tensor(tensor);
  return writer.bytes();
}

TEST(HostileGguf, Headers) {
  const Hostile cases[] = {
      {"magic", raw(std::uint32_t{0x46554748}, std::uint32_t{3}), ErrorCode::kCorrupt, {"bad.gguf", "not a GGUF file"}},
      {"one byte", raw('G'), ErrorCode::kCorrupt, {"not a GGUF file"}},
      {"magic alone", raw(kMagic), ErrorCode::kCorrupt, {"ends at byte 4", "header"}},
      {"version 1", raw(kMagic, std::uint32_t{1}), ErrorCode::kUnsupported, {"version 1", "2 and 3"}},
      {"version 4", raw(kMagic, std::uint32_t{4}), ErrorCode::kUnsupported, {"version 4"}},
      {"big-endian", raw(kMagic, std::uint32_t{0x03000000}), ErrorCode::kUnsupported, {"big-endian", "version 3"}},
      {"no counts", raw(kMagic, std::uint32_t{3}), ErrorCode::kCorrupt, {"header"}},
      {"half a header", raw(kMagic, std::uint32_t{3}, std::uint64_t{0}), ErrorCode::kCorrupt, {"header"}},
      {"tensors", header(~std::uint64_t{0}, 0), ErrorCode::kCorrupt, {"tensor count", "18446744073709551615", "65536"}},
      {"tensors that don't fit", header(5, 0), ErrorCode::kCorrupt, {"tensor count is 5", "fits"}},
      {"keys", header(0, std::uint64_t{1} << 60U), ErrorCode::kCorrupt, {"key count", "65536"}},
      {"keys that don't fit", header(0, 65'536), ErrorCode::kCorrupt, {"key count is 65536", "fits"}},
  };
  for (const Hostile& hostile : cases) expect_refused(hostile);
}

TEST(HostileGguf, Keys) {
  const auto key = [](auto... rest) {
    std::vector<std::byte> bytes = header(0, 1);
    const std::vector<std::byte> more = raw(rest...);
    bytes.insert(bytes.end(), more.begin(), more.end());
    bytes.resize(64);  // room for the count check
    return bytes;
  };
  std::vector<std::byte> no_count = with_key([](GgufWriter& w) { w.add_array("k", 0, 0, {}); });
  no_count.resize(24 + 8 + 1 + 4 + 2);
  const Hostile cases[] = {
      {"empty", key(std::uint64_t{0}), ErrorCode::kCorrupt, {"key 0", "empty"}},
      {"over the limit", key(std::uint64_t{65'536}), ErrorCode::kCorrupt, {"key 0", "65536", "65535"}},
      {"over the file", key(std::uint64_t{65'535}), ErrorCode::kCorrupt, {"key 0", "ends"}},
      {"unknown type",
       with_key([](GgufWriter& w) {
         w.add_raw("k", 13, {});
         w.add_u32("l", 0);
       }),
       ErrorCode::kUnsupported,
       {"'k'", "type 13"}},
      {"twice",
       with_key([](GgufWriter& w) {
         w.add_u8("k", 1);
         w.add_u8("j", 1);
         w.add_u8("k", 2);
       }),
       ErrorCode::kCorrupt,
       {"'k'", "once"}},
      {"unknown element",
       with_key([](GgufWriter& w) { w.add_array("k", 99, 1, raw(1)); }),
       ErrorCode::kUnsupported,
       {"'k'", "type 99"}},
      {"too many u64",
       with_key([](GgufWriter& w) { w.add_array("k", 10, std::uint64_t{1} << 61U, raw(std::uint64_t{1})); }),
       ErrorCode::kCorrupt,
       {"'k'", "2305843009213693952"}},
      {"too many strings",
       with_key([](GgufWriter& w) { w.add_array("k", 8, 1000, raw(std::uint64_t{0})); }),
       ErrorCode::kCorrupt,
       {"'k'", "1000"}},
      {"strings' end",
       with_key([](GgufWriter& w) { w.add_array("k", 8, 2, raw(std::uint64_t{0}, std::uint64_t{200})); }),
       ErrorCode::kCorrupt,
       {"'k'", "element 1", "200"}},
      {"array without count", no_count, ErrorCode::kCorrupt, {"'k'", "ends at byte 39"}},
      {"alignment 0",
       with_key([](GgufWriter& w) { w.add_u32("general.alignment", 0); }),
       ErrorCode::kCorrupt,
       {"alignment", "is 0"}},
      {"alignment 48",
       with_key([](GgufWriter& w) { w.add_u32("general.alignment", 48); }),
       ErrorCode::kCorrupt,
       {"48", "power of two"}},
      {"alignment 4", with_key([](GgufWriter& w) { w.add_u32("general.alignment", 4); }), ErrorCode::kCorrupt, {"is 4", "8"}},
      {"alignment 2^31",
       with_key([](GgufWriter& w) { w.add_u32("general.alignment", 1U << 31U); }),
       ErrorCode::kCorrupt,
       {"2147483648"}},
      {"alignment text",
       with_key([](GgufWriter& w) { w.add_string("general.alignment", "32"); }),
       ErrorCode::kCorrupt,
       {"alignment", "string"}},
  };
  for (const Hostile& hostile : cases) expect_refused(hostile);
}

TEST(HostileGguf, Tensors) {
  const std::vector<std::byte> data(64);
  const std::string long_name(256, 'n');
  GgufWriter twice;
  twice.add_raw_tensor({.name = "t", .dims = {4}, .data = data});
  twice.add_raw_tensor({.name = "t", .dims = {4}, .data = data});
  GgufWriter overlap;
  overlap.add_raw_tensor({.name = "a", .dims = {16}, .data = data});
  overlap.add_raw_tensor({.name = "b", .dims = {4}, .data = data, .offset = 32});
  GgufWriter shared;
  shared.add_raw_tensor({.name = "a", .dims = {16}, .data = data});
  shared.add_raw_tensor({.name = "b", .dims = {16}, .data = data, .offset = 0});
  std::vector<std::byte> cut = with_tensor({.name = "t", .dims = {16}, .data = data});
  cut.pop_back();
  const Hostile cases[] = {
      {"no name", with_tensor({.name = "", .dims = {4, 4}, .data = data}), ErrorCode::kCorrupt, {"entry 0", "name of 0"}},
      {"long name", with_tensor({.name = long_name, .dims = {4}, .data = data}), ErrorCode::kCorrupt, {"256", "255"}},
      {"no dimensions",
       with_tensor({.name = "tensor.t", .dims = {}, .data = data}),
       ErrorCode::kCorrupt,
       {"'tensor.t'", "0 dimensions"}},
      {"five dimensions",
       with_tensor({.name = "t", .dims = {1, 1, 1, 1, 1}, .data = data}),
       ErrorCode::kCorrupt,
       {"'t'", "5 dimensions"}},
      {"dimension 0", with_tensor({.name = "t", .dims = {4, 0}, .data = data}), ErrorCode::kCorrupt, {"'t'", "dimension of 0"}},
      {"inside a block",
       with_tensor({.name = "t", .dims = {33}, .gguf_type = kQ4_0, .data = data}),
       ErrorCode::kCorrupt,
       {"'t'", "33", "Q4_0"}},
      {"bytes overflow",
       with_tensor({.name = "t", .dims = {std::uint64_t{1} << 62U}, .gguf_type = kF32, .data = data}),
       ErrorCode::kCorrupt,
       {"'t'", "too large"}},
      {"beyond the end",
       with_tensor({.name = "t", .dims = {17}, .data = data}),
       ErrorCode::kCorrupt,
       {"'t'", "68 bytes", "64 bytes of data"}},
      {"one byte short", cut, ErrorCode::kCorrupt, {"'t'", "63 bytes of data"}},
      {"offset beyond",
       with_tensor({.name = "t", .dims = {1}, .data = data, .offset = 64}),
       ErrorCode::kCorrupt,
       {"'t'", "offset 64"}},
      {"offset wraps",
       with_tensor({.name = "t", .dims = {16}, .data = data, .offset = ~std::uint64_t{31}}),
       ErrorCode::kCorrupt,
       {"'t'", "18446744073709551584"}},
      {"offset of an unknown format",
       with_tensor({.name = "t", .dims = {1}, .gguf_type = 99, .data = data, .offset = 96}),
       ErrorCode::kCorrupt,
       {"'t'", "offset 96"}},
      {"misaligned",
       with_tensor({.name = "t", .dims = {1}, .data = data, .offset = 16}),
       ErrorCode::kCorrupt,
       {"'t'", "16", "alignment 32"}},
      {"twice", twice.bytes(), ErrorCode::kCorrupt, {"'t'", "once"}},
      {"overlap", overlap.bytes(), ErrorCode::kCorrupt, {"'a'", "'b'", "overlap", "32"}},
      {"same place", shared.bytes(), ErrorCode::kCorrupt, {"overlap at offset 0"}},
  };
  for (const Hostile& hostile : cases) expect_refused(hostile);
}

// A number that the file ends before is not taken for 0.
TEST(HostileGguf, EndsBeforeALength) {
  const std::string name(100, 'n');
  const auto cut = [](std::vector<std::byte> bytes, std::size_t size) {
    bytes.resize(size);
    return bytes;
  };
  const std::vector<std::byte> two_keys = with_key([&](GgufWriter& w) {
    w.add_u8(name, 1);
    w.add_u8("k", 1);
  });
  const std::vector<std::byte> text = with_key([](GgufWriter& w) { w.add_string("k", ""); });
  const std::vector<std::byte> texts =
      with_key([](GgufWriter& w) { w.add_array("k", 8, 2, raw(std::uint64_t{8}, std::uint64_t{0}, std::uint64_t{0})); });
  const std::vector<std::byte> one_tensor = with_tensor({.name = name, .dims = {1}});
  GgufWriter two_tensors;
  two_tensors.add_raw_tensor({.name = name, .dims = {1}});
  two_tensors.add_raw_tensor({.name = "t", .dims = {1}});
  const Hostile cases[] = {
      {"second key", cut(two_keys, 24 + 8 + 100 + 4 + 1), ErrorCode::kCorrupt, {"ends at byte 137", "key 1"}},
      {"string", cut(text, 24 + 8 + 1 + 4 + 4), ErrorCode::kCorrupt, {"ends at byte 41", "'k'"}},
      {"second string", cut(texts, 24 + 8 + 1 + 4 + 4 + 8 + 16), ErrorCode::kCorrupt, {"ends at byte 65", "'k'"}},
      {"second tensor",
       cut(two_tensors.bytes(), 24 + 8 + 100 + 4 + 8 + 4 + 8),
       ErrorCode::kCorrupt,
       {"ends at byte 156", "entry 1"}},
      {"name", cut(one_tensor, 24 + 8 + 99), ErrorCode::kCorrupt, {"ends at byte 131", "entry 0"}},
      {"rank", cut(one_tensor, 24 + 8 + 100 + 2), ErrorCode::kCorrupt, {"ends at byte 134", "'nnn"}},
      {"dimension", cut(one_tensor, 24 + 8 + 100 + 4 + 7), ErrorCode::kCorrupt, {"ends at byte 143", "'nnn"}},
      {"format", cut(one_tensor, 24 + 8 + 100 + 4 + 8 + 3), ErrorCode::kCorrupt, {"ends at byte 147", "entry 0"}},
      {"offset", cut(one_tensor, 24 + 8 + 100 + 4 + 8 + 4 + 7), ErrorCode::kCorrupt, {"ends at byte 155", "entry 0"}},
  };
  for (const Hostile& hostile : cases) expect_refused(hostile);
}

// Every prefix of a good file is refused.
TEST(HostileGguf, Truncations) {
  testing::TinyLlama options;
  options.layers = 1;
  const std::vector<std::byte> bytes = testing::tiny_llama_gguf(options);
  ASSERT_TRUE(parse(bytes).ok());
  std::size_t step = 1;
  for (std::size_t size = 0; size < bytes.size(); size += step) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_TRUE(is_error(parse(cut), ErrorCode::kCorrupt, {"bad.gguf"})) << size;
    step = size < 2'000 ? 1 : 97;
  }
}

TEST(Case, BL112_MetadataOfUnexpectedType) {
  const auto base = [] {
    GgufWriter writer;
    writer.add_string("general.architecture", "llama");
    writer.add_u64("llama.block_count", 2);
    writer.add_number("llama.embedding_length", GgufType::kUint16, std::uint16_t{64});
    writer.add_number("llama.feed_forward_length", GgufType::kInt64, std::int64_t{96});
    writer.add_u8("llama.attention.head_count", 2);
    const std::int32_t kv_heads[] = {1, 1};
    writer.add_numbers("llama.attention.head_count_kv", GgufType::kInt32, kv_heads);
    writer.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
    writer.add_u8("split.count", 1);
    writer.add_raw_tensor({.name = "token_embd.weight", .dims = {64, 2}, .data = std::vector<std::byte>(512)});
    return writer;
  };
  GgufWriter good = base();
  good.add_u32("llama.context_length", 128);
  const std::vector<std::byte> good_bytes = good.bytes();
  const auto config_of = [](const std::vector<std::byte>& bytes) {
    const GgufFile file = parse(bytes).value();
    return read_gguf_config(std::span(&file, 1));
  };
  const Result<ModelConfig> config = config_of(good_bytes);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->kv_heads, 1);

  const std::vector<std::byte> missing = base().bytes();
  EXPECT_TRUE(is_error(config_of(missing), ErrorCode::kCorrupt, {"'llama.context_length'", "missing"}));

  const auto vocabulary = [](const std::function<void(GgufWriter&)>& add) {
    GgufWriter writer;
    const std::vector<std::string> tokens = {"a", "b", "ab"};
    writer.add_string("tokenizer.ggml.model", "gpt2");
    writer.add_strings("tokenizer.ggml.tokens", tokens);
    add(writer);
    const std::vector<std::byte> bytes = writer.bytes();
    const GgufFile file = parse(bytes).value();
    const Result<GgufVocabulary> result = read_gguf_vocabulary(file);
    return result.ok() ? Status() : Status(result.error());
  };
  const std::uint32_t types_u32[] = {1, 1, 3};
  const std::int64_t types_i64[] = {1, 1, 3};
  const float scores[] = {0, 1};
  const std::vector<std::string> merges = {"a b", "ab"};
  EXPECT_TRUE(vocabulary([&](GgufWriter& w) { w.add_numbers("tokenizer.ggml.token_type", GgufType::kUint32, types_u32); }).ok());
  EXPECT_TRUE(vocabulary([&](GgufWriter& w) { w.add_numbers("tokenizer.ggml.token_type", GgufType::kInt64, types_i64); }).ok());
  EXPECT_TRUE(is_error(vocabulary([&](GgufWriter& w) { w.add_numbers("tokenizer.ggml.scores", GgufType::kFloat32, scores); }),
                       ErrorCode::kCorrupt, {"'tokenizer.ggml.scores'", "2 elements", "3 tokens"}));
  EXPECT_TRUE(is_error(vocabulary([&](GgufWriter& w) { w.add_strings("tokenizer.ggml.merges", merges); }), ErrorCode::kCorrupt,
                       {"'tokenizer.ggml.merges'", "'ab'", "index 1", "space"}));
}

TEST(Case, BL113_HostileHeaders) {
  std::vector<std::byte> tiny = header(0, 1);
  const std::vector<std::byte> key_bytes = raw(std::uint64_t{0xFFFFFFFFFFFF});
  tiny.insert(tiny.end(), key_bytes.begin(), key_bytes.end());
  ASSERT_EQ(tiny.size(), 32U);
  const Hostile cases[] = {
      {"32 bytes, as found", tiny, ErrorCode::kCorrupt, {"key count is 1", "fits"}},
      {"with room",
       [&] {
         auto b = tiny;
         b.resize(64);
         return b;
       }(),
       ErrorCode::kCorrupt,
       {"key 0", "281474976710655"}},
      {"empty key",
       with_key([](GgufWriter& w) {
         w.add_u32("", 1);
         w.add_u32("k", 1);
       }),
       ErrorCode::kCorrupt,
       {"key 0", "empty"}},
      {"unknown element type",
       with_key([](GgufWriter& w) { w.add_array("k", 13, 4, raw(1)); }),
       ErrorCode::kUnsupported,
       {"'k'", "13"}},
      {"count times size",
       with_key([](GgufWriter& w) { w.add_array("k", 12, 0x2000000000000001, raw(1.0)); }),
       ErrorCode::kCorrupt,
       {"'k'", "2305843009213693953"}},
  };
  for (const Hostile& hostile : cases) expect_refused(hostile);

  GgufWriter scores;
  const std::vector<std::string> tokens = {"a", "b"};
  const std::uint8_t bytes[] = {1, 2};
  scores.add_string("tokenizer.ggml.model", "llama");
  scores.add_strings("tokenizer.ggml.tokens", tokens);
  scores.add_numbers("tokenizer.ggml.scores", GgufType::kUint8, bytes);
  const std::vector<std::byte> file = scores.bytes();
  const GgufFile parsed = parse(file).value();
  EXPECT_TRUE(is_error(read_gguf_vocabulary(parsed), ErrorCode::kCorrupt, {"'tokenizer.ggml.scores'", "array of u8", "f32"}));
}

TEST(Case, BL118_ShapeProductWraps) {
  const Hostile cases[] = {
      {"2^64 elements",
       with_tensor({.name = "t", .dims = {1'073'741'824, 1'073'741'824, 16}}),
       ErrorCode::kCorrupt,
       {"'t'", "product"}},
      {"-1", with_tensor({.name = "t", .dims = {~std::uint64_t{0}}}), ErrorCode::kCorrupt, {"'t'", "18446744073709551615"}},
      {"2^31 of nothing", with_tensor({.name = "t", .dims = {2'147'483'648}}), ErrorCode::kCorrupt, {"'t'", "8589934592 bytes"}},
  };
  for (const Hostile& hostile : cases) expect_refused(hostile);
}

TEST(Case, BL119_StringLengthWrapsAndNestedArrays) {
  const std::uint64_t wraps = 0xFFFFFFFFFFFFFFF8;
  const Hostile cases[] = {
      {"string",
       with_key([&](GgufWriter& w) { w.add_raw("k", 8, raw(wraps, std::uint64_t{0})); }),
       ErrorCode::kCorrupt,
       {"'k'", "18446744073709551608"}},
      {"key",
       [&] {
         auto b = header(0, 1);
         b.resize(64);
         std::memcpy(b.data() + 24, &wraps, 8);
         return b;
       }(),
       ErrorCode::kCorrupt,
       {"key 0", "18446744073709551608"}},
      {"string in an array",
       with_key([&](GgufWriter& w) { w.add_array("k", 8, 1, raw(wraps, std::uint64_t{0})); }),
       ErrorCode::kCorrupt,
       {"'k'", "element 0", "18446744073709551608"}},
      {"array of arrays",
       with_key([](GgufWriter& w) { w.add_array("k", 9, 1, raw(std::uint32_t{0}, std::uint64_t{1}, 'x')); }),
       ErrorCode::kUnsupported,
       {"'k'", "arrays of arrays"}},
  };
  for (const Hostile& hostile : cases) expect_refused(hostile);
}

}  // namespace
}  // namespace linnet
