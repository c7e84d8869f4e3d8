#include "hub/file_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace linnet {
namespace {

std::vector<HubFile> files(const std::vector<std::string>& paths) {
  std::vector<HubFile> result;
  for (const std::string& path : paths) result.push_back({path, 1'500'000, std::string(40, 'a')});
  return result;
}

// The paths chosen, or the error's message.
std::vector<std::string> chosen(const std::vector<std::string>& paths, const std::string& name) {
  const Result<std::vector<HubFile>> result = choose_files(files(paths), *parse_hub_name(name));
  if (!result.ok()) return {result.error().message};
  std::vector<std::string> names;
  for (const HubFile& file : *result) names.push_back(file.path);
  return names;
}

using Paths = std::vector<std::string>;

TEST(FileChoice, SafetensorsComeWithTheirTexts) {
  const struct {
    Paths there;
    Paths wanted;
  } cases[] = {
      {{".gitattributes", "README.md", "config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja",
        "pytorch_model.bin", "onnx/model.onnx", "onnx/config.json", "training_args.bin", "trainer_state.json", "merges.txt",
        "flax_model.msgpack"},
       {"chat_template.jinja", "config.json", "merges.txt", "model.safetensors", "tokenizer.json"}},
      {{"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json",
        "consolidated.safetensors", "original/consolidated.00.pth", "additional_chat_templates/tool.jinja", "other/x.jinja"},
       {"additional_chat_templates/tool.jinja", "config.json", "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors", "model.safetensors.index.json"}},
      // an index without shards, as conversions leave it behind
      {{"config.json", "model.safetensors", "model.safetensors.index.json"}, {"config.json", "model.safetensors"}},
      {{"model-00001-of-00001.safetensors"}, {"model-00001-of-00001.safetensors"}},
      {{"model-00001-of-00001.safetensors", "model.safetensors"}, {"model.safetensors"}},
      {{"model.safetensors", "adapter_model.safetensors", "consolidated.safetensors"}, {"model.safetensors"}},
      {{"weights.00.safetensors", "weights.01.safetensors", "adapters.safetensors"},
       {"weights.00.safetensors", "weights.01.safetensors"}},
      {{"m-Q4_0.gguf", "m-Q8_0.gguf", "model.safetensors"}, {"model.safetensors"}},
  };
  for (const auto& c : cases) EXPECT_EQ(chosen(c.there, "org/name"), c.wanted) << testing::PrintToString(c.there);
}

TEST(FileChoice, AGgufIsNamedByQuantizationOrFile) {
  const Paths there = {"m-IQ4_XS.gguf",
                       "m-Q4_K.gguf",
                       "m-Q4_K_M.gguf",
                       "m.Q8_0.gguf",
                       "m_q6_k.gguf",
                       "m-Q4_0_4_4.gguf",
                       "big/m-F16-00001-of-00002.gguf",
                       "big/m-F16-00002-of-00002.gguf",
                       "mmproj-F16.gguf",
                       "m-imatrix.gguf",
                       "config.json",
                       "UD-Q2_K/x.gguf"};
  const struct {
    const char* name;
    Paths wanted;
  } cases[] = {
      {"o/r:Q4_K", {"m-Q4_K.gguf"}},
      {"o/r:q4_k_m", {"m-Q4_K_M.gguf"}},
      {"o/r:Q8_0", {"m.Q8_0.gguf"}},
      {"o/r:Q6_K", {"m_q6_k.gguf"}},
      {"o/r:IQ4_XS", {"m-IQ4_XS.gguf"}},
      {"o/r:F16", {"big/m-F16-00001-of-00002.gguf", "big/m-F16-00002-of-00002.gguf"}},
      {"o/r:UD-Q2_K", {"UD-Q2_K/x.gguf"}},
      {"o/r/m.Q8_0.gguf", {"m.Q8_0.gguf"}},
      {"o/r/big/m-F16-00002-of-00002.gguf", {"big/m-F16-00001-of-00002.gguf", "big/m-F16-00002-of-00002.gguf"}},
  };
  for (const auto& c : cases) EXPECT_EQ(chosen(there, c.name), c.wanted) << c.name;
  EXPECT_EQ(chosen({"only.gguf", "mmproj.gguf", "config.json"}, "o/r"), Paths{"only.gguf"});
}

TEST(FileChoice, ErrorsNameWhatThereIs) {
  EXPECT_EQ(chosen({"a-Q4_0.gguf", "b-F16-00001-of-00002.gguf", "b-F16-00002-of-00002.gguf"}, "o/r"),
            Paths{"o/r has several GGUF files; name one, as in `linnet get o/r/FILE` or `linnet get o/r:Q4_K_M`:\n"
                  "  a-Q4_0.gguf  1.5 MB\n  b-F16-00001-of-00002.gguf  3.0 MB in 2 files"});
  EXPECT_EQ(chosen({"a-Q4_0.gguf", "b-Q4_0.gguf", "c-Q8_0.gguf"}, "o/r:Q4_0"),
            Paths{"o/r has several GGUF files for \"Q4_0\"; name one, as in `linnet get o/r/FILE` or `linnet get o/r:Q4_K_M`:\n"
                  "  a-Q4_0.gguf  1.5 MB\n  b-Q4_0.gguf  1.5 MB"});
  EXPECT_EQ(chosen({"a-Q4_0.gguf"}, "o/r:Q8_0"), Paths{"o/r has no GGUF \"Q8_0\"; it has\n  a-Q4_0.gguf  1.5 MB"});
  EXPECT_EQ(chosen({"model.safetensors"}, "o/r/x.gguf"), Paths{"o/r has no GGUF \"x.gguf\" and no other"});
  EXPECT_NE(chosen({"pytorch_model.bin", "config.json"}, "o/r")[0].find("neither safetensors nor GGUF"), std::string::npos);
}

}  // namespace
}  // namespace linnet
