#include <string_view>
#include <utility>

#include "entry.h"
#include "weights/config_json.h"
#include "weights/folder_config.h"
#include "weights/folder_files.h"
#include "weights/folder_quantization.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto json = linnet::parse_json_object(text, "config.json");
  if (!json.ok()) return 0;
  const auto config = linnet::ConfigJson::make(std::move(json).value(), "config.json");
  if (!config.ok()) return 0;
  const auto model = linnet::read_folder_config(*config);
  if (model.ok() && (model->layers < 1 || model->heads % model->kv_heads != 0 || model->head_dim % 2 != 0)) __builtin_trap();
  const auto quantization = linnet::FolderQuantization::read(*config);
  if (quantization.ok() && quantization->named("model.embed_tokens") && !quantization->present()) __builtin_trap();
  return 0;
}
