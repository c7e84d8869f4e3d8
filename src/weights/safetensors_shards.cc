#include "weights/safetensors_shards.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "weights/folder_files.h"
#include "weights/quote.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kIndexBytesMax = std::size_t{64} << 20;
constexpr std::size_t kShardsMax = 4096;
constexpr std::string_view kIndexName = "model.safetensors.index.json";

// By name.
std::vector<std::string> model_files_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed); !failed && it != fs::directory_iterator(); it.increment(failed)) {
    std::string name = it->path().filename().string();
    if (name.starts_with("model") && name.ends_with(".safetensors")) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status check_shard(const SafetensorsFile& file, const std::vector<std::string>& tensors) {
  for (const std::string& tensor : tensors) {
    if (file.find(tensor) != nullptr) continue;
    return file.error(ErrorCode::kCorrupt,
                      "tensor " + quote(tensor) + " is not in it, though " + std::string(kIndexName) + " says so");
  }
  return {};
}

Status check_twice(const std::vector<SafetensorsFile>& files) {
  std::unordered_map<std::string_view, const SafetensorsFile*> places;
  for (const SafetensorsFile& file : files) {
    for (const SafetensorsTensor& tensor : file.tensors()) {
      const auto [at, first] = places.emplace(tensor.name, &file);
      if (!first)
        return file.error(ErrorCode::kCorrupt, "tensor " + quote(tensor.name) + " is in " + at->second->path() + " too");
    }
  }
  return {};
}

}  // namespace

Result<ShardIndex> parse_shard_index(std::string_view text, const std::string& path) {
  const JsonLimits limits{
      .depth_max = 8, .elements_max = SafetensorsLimits::kTensorsMax * 4, .object_keys_max = SafetensorsLimits::kTensorsMax};
  LINNET_ASSIGN(const Json json, parse_json_object(text, path, limits));
  const auto corrupt = [&](const std::string& what) { return Error{ErrorCode::kCorrupt, path + ": " + what, path}; };
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object() || map->empty()) return corrupt("key 'weight_map' is no object with tensors");
  ShardIndex index;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string()) return corrupt("tensor " + quote(tensor) + " is in no file: a name is wanted");
    const auto name = shard.get<std::string>();
    // A name, not a path: nothing outside of the folder is opened.
    if (!name.ends_with(".safetensors") || name.find('/') != std::string::npos || name.find('\0') != std::string::npos) {
      return corrupt("tensor " + quote(tensor) + " is in " + quote(name) + "; the name of a .safetensors file is wanted");
    }
    index[name].push_back(tensor);
    if (index.size() > kShardsMax) return corrupt("more than " + std::to_string(kShardsMax) + " files");
  }
  return index;
}

Result<SafetensorsShards> open_safetensors_shards(const std::string& folder) {
  const fs::path root(folder);
  const std::string index_path = (root / kIndexName).string();
  LINNET_ASSIGN(const std::optional<std::string> text, read_folder_file(index_path, kIndexBytesMax));
  const std::vector<std::string> there = model_files_in(root);
  SafetensorsShards shards;
  ShardIndex index;
  if (text) {
    LINNET_ASSIGN(index, parse_shard_index(*text, index_path));
  } else {
    for (const std::string& name : there) index.emplace(name, std::vector<std::string>());
    if (index.empty()) return Error{ErrorCode::kNotFound, folder + ": no model*.safetensors file in this folder", folder};
    if (index.size() > kShardsMax)
      return Error{ErrorCode::kTooLarge, folder + ": more than " + std::to_string(kShardsMax) + " files", folder};
  }
  for (const auto& [name, tensors] : index) {
    Result<SafetensorsFile> file = SafetensorsFile::open((root / name).string());
    if (!file.ok() && file.error().code == ErrorCode::kNotFound) {
      return Error{ErrorCode::kNotFound, file.error().message + " (incomplete download?)", (root / name).string()};
    }
    if (!file.ok()) return file.error();
    LINNET_RETURN_IF_ERROR(check_shard(*file, tensors));
    shards.files.push_back(*std::move(file));
  }
  for (const std::string& name : there) {
    if (!index.contains(name)) shards.warnings.push_back((root / name).string() + " is in no index and is not read");
  }
  LINNET_RETURN_IF_ERROR(check_twice(shards.files));
  return shards;
}

}  // namespace linnet
