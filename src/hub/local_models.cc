#include "hub/local_models.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "hub/cache_folder.h"
#include "hub/demo_models.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// The entries of a folder by name; what cannot be read is left out.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed); !failed && it != fs::directory_iterator(); it.increment(failed)) {
    entries.push_back(*it);
    if (entries.size() == LocalModelLimits::kEntriesMax) break;
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// "name-00002-of-00003.gguf" -> "name-00001-of-00003.gguf"; a name that is no part of a split file is itself.
std::string first_part(const std::string& name) {
  constexpr std::string_view kPattern = "-00000-of-00000.gguf";
  if (name.size() < kPattern.size()) return name;
  const std::size_t begin = name.size() - kPattern.size();
  for (std::size_t i = 0; i < kPattern.size(); ++i) {
    const char c = name[begin + i];
    const bool matches = kPattern[i] == '0' ? std::isdigit(static_cast<unsigned char>(c)) != 0 : c == kPattern[i];
    if (!matches) return name;
  }
  std::string first = name;
  return first.replace(begin + 1, 5, "00001");
}

// The models in one folder: its .gguf files, each split one as a whole, and the folder itself if it is a model.
void add_models(const std::string& name, const fs::path& folder, std::vector<LocalModel>& found) {
  std::map<std::string, std::uint64_t> gguf_bytes;  // by the first part's name
  std::uint64_t safetensors_bytes = 0;
  bool config = false;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    std::error_code failed;
    if (!entry.is_regular_file(failed)) continue;
    const std::string file = entry.path().filename().string();
    const std::uint64_t bytes = entry.file_size(failed);
    if (failed) continue;
    if (file.ends_with(".gguf")) gguf_bytes[first_part(file)] += bytes;
    if (file.starts_with("model") && file.ends_with(".safetensors")) safetensors_bytes += bytes;
    config = config || file == "config.json";
  }
  for (const auto& [file, bytes] : gguf_bytes) found.push_back({name, folder / file, bytes});
  if (config && safetensors_bytes != 0) found.push_back({name, folder, safetensors_bytes});
}

// Where main was last seen; empty if the cache does not say.
std::string main_revision(const fs::path& repository) {
  std::ifstream file(repository / "refs" / "main");
  std::string line(64, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return line.substr(0, line.find_first_of("\r\n"));
}

// models--org--name -> org/name; empty for other folders.
std::optional<std::string> repository_name(const std::string& folder) {
  constexpr std::string_view kPrefix = "models--";
  if (!folder.starts_with(kPrefix)) return std::nullopt;
  std::string name = folder.substr(kPrefix.size());
  if (const std::size_t separator = name.find("--"); separator != std::string::npos) name.replace(separator, 2, "/");
  return name;
}

void add_repository(const std::string& name, const fs::path& repository, std::vector<LocalModel>& found) {
  const std::string main = main_revision(repository);
  for (const fs::directory_entry& snapshot : entries_of(repository / "snapshots")) {
    const std::string revision = snapshot.path().filename().string();
    const std::string full = revision == main ? name : name + "@" + revision.substr(0, 12);
    add_models(full, snapshot.path(), found);
    // Repositories with many GGUF files keep some in folders.
    for (const fs::directory_entry& folder : entries_of(snapshot.path())) {
      std::error_code failed;
      if (folder.is_directory(failed) && found.size() < LocalModelLimits::kModelsMax) add_models(full, folder.path(), found);
    }
  }
}

std::string names_of(const std::vector<LocalModel>& models) {
  std::string text;
  for (const LocalModel& model : models) text += (text.empty() ? "" : ", ") + model.name;
  return text;
}

std::string paths_of(const std::vector<LocalModel>& models) {
  std::string text;
  for (const LocalModel& model : models) text += (text.empty() ? "" : ", ") + model.path.string();
  return text;
}

}  // namespace

ModelFolders ModelFolders::of_environment() {
  const Result<fs::path> own = models_folder();
  const Result<fs::path> hub = hub_cache_folder();
  return {.own = own.ok() ? *own : fs::path(), .hub = hub.ok() ? *hub : fs::path()};
}

std::vector<LocalModel> list_models(const ModelFolders& folders) {
  std::vector<LocalModel> found;
  if (!folders.own.empty()) {
    for (const fs::directory_entry& folder : entries_of(folders.own)) {
      if (found.size() < LocalModelLimits::kModelsMax) add_models(folder.path().filename().string(), folder.path(), found);
    }
  }
  if (!folders.hub.empty()) {
    for (const fs::directory_entry& folder : entries_of(folders.hub)) {
      const std::optional<std::string> name = repository_name(folder.path().filename().string());
      if (name && found.size() < LocalModelLimits::kModelsMax) add_repository(*name, folder.path(), found);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const LocalModel& a, const LocalModel& b) { return std::pair(a.name, a.path) < std::pair(b.name, b.path); });
  if (found.size() > LocalModelLimits::kModelsMax) found.resize(LocalModelLimits::kModelsMax);
  return found;
}

Result<std::string> resolve_model(std::string_view wanted, const ModelFolders& folders) {
  std::error_code failed;
  if (wanted.empty()) return Error{ErrorCode::kInvalidArgument, "the model's name is empty", "MODEL"};
  if (fs::exists(fs::path(wanted), failed)) return std::string(wanted);
  const DemoModel* demo = find_demo_model(wanted);
  const std::string name = lower(demo != nullptr ? demo->name : wanted);
  const std::vector<LocalModel> every = list_models(folders);
  std::vector<LocalModel> exact;
  std::vector<LocalModel> partial;
  for (const LocalModel& model : every) {
    if (lower(model.name) == name) exact.push_back(model);
    if (lower(model.name).find(name) != std::string::npos) partial.push_back(model);
  }
  if (exact.size() == 1) return exact[0].path.string();
  const std::string quoted = "\"" + std::string(wanted) + "\"";
  if (exact.size() > 1) {
    return Error{ErrorCode::kInvalidArgument, quoted + " has several files, name one: " + paths_of(exact), "MODEL"};
  }
  if (demo != nullptr) {
    return Error{ErrorCode::kNotFound,
                 quoted + " is not on this machine; fetch it with `linnet get " + std::string(demo->alias) + "`", "MODEL"};
  }
  if (partial.size() == 1) return partial[0].path.string();
  if (partial.size() > 1) {
    return Error{ErrorCode::kInvalidArgument, quoted + " is part of several models' names: " + names_of(partial), "MODEL"};
  }
  const std::string there =
      every.empty() ? "there are none; `linnet get demo` fetches a small one" : "there are " + names_of(every);
  return Error{ErrorCode::kNotFound, "no file and no model named " + quoted + "; " + there, "MODEL"};
}

Result<std::string> resolve_model(std::string_view wanted) { return resolve_model(wanted, ModelFolders::of_environment()); }

}  // namespace linnet
