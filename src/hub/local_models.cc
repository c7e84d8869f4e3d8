#include "hub/local_models.h"

#include <algorithm>
#include <cctype>
#include <system_error>

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

// The entries of a folder, in no order; what cannot be read is left out.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed); !failed && it != fs::directory_iterator(); it.increment(failed))
    entries.push_back(*it);
  return entries;
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

std::vector<LocalModel> list_models(const fs::path& models) {
  std::vector<LocalModel> found;
  for (const fs::directory_entry& folder : entries_of(models)) {
    for (const fs::directory_entry& file : entries_of(folder.path())) {
      std::error_code failed;
      if (file.path().extension() != ".gguf" || !file.is_regular_file(failed)) continue;
      const std::uint64_t bytes = file.file_size(failed);
      if (!failed) found.push_back({folder.path().filename().string(), file.path(), bytes});
    }
  }
  std::sort(found.begin(), found.end(), [](const LocalModel& a, const LocalModel& b) { return a.path < b.path; });
  return found;
}

Result<std::string> resolve_model(std::string_view wanted, const fs::path& models) {
  std::error_code failed;
  if (wanted.empty()) return Error{ErrorCode::kInvalidArgument, "the model's name is empty", "MODEL"};
  if (fs::exists(fs::path(wanted), failed)) return std::string(wanted);
  const DemoModel* demo = find_demo_model(wanted);
  const std::string name = lower(demo != nullptr ? demo->name : wanted);
  const std::vector<LocalModel> every = list_models(models);
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

Result<std::string> resolve_model(std::string_view wanted) {
  std::error_code failed;
  if (!wanted.empty() && fs::exists(fs::path(wanted), failed)) return std::string(wanted);  // needs no cache folder
  LINNET_ASSIGN(const fs::path models, models_folder());
  return resolve_model(wanted, models);
}

}  // namespace linnet
