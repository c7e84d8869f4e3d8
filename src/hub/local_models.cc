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
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string joined(const std::vector<const LocalModel*>& models) {
  std::string text;
  for (const LocalModel* model : models) text += (text.empty() ? "" : ", ") + model->name;
  return text;
}

}  // namespace

std::vector<LocalModel> list_models(const fs::path& models) {
  std::vector<LocalModel> found;
  std::error_code failed;
  for (const fs::directory_entry& folder : fs::directory_iterator(models, failed)) {
    std::error_code skipped;
    for (const fs::directory_entry& file : fs::directory_iterator(folder.path(), skipped)) {
      if (file.path().extension() != ".gguf" || !file.is_regular_file(skipped)) continue;
      found.push_back({folder.path().filename().string(), file.path(), file.file_size(skipped)});
    }
  }
  std::sort(found.begin(), found.end(), [](const LocalModel& a, const LocalModel& b) { return a.path < b.path; });
  return found;
}

Result<std::string> resolve_model(std::string_view wanted, const fs::path& models) {
  std::error_code failed;
  if (wanted.empty()) return Error{ErrorCode::kInvalidArgument, "the model's name is empty", "MODEL"};
  if (fs::exists(fs::path(wanted), failed)) return std::string(wanted);
  const std::vector<LocalModel> all = list_models(models);
  const DemoModel* demo = find_demo_model(wanted);
  const std::string name = lower(demo != nullptr ? demo->name : wanted);
  std::vector<const LocalModel*> matches;
  std::vector<const LocalModel*> every;
  for (const LocalModel& model : all) {
    every.push_back(&model);
    if (lower(model.name) == name) return model.path.string();
    if (demo == nullptr && lower(model.name).find(name) != std::string::npos) matches.push_back(&model);
  }
  if (matches.size() == 1) return matches[0]->path.string();
  const std::string quoted = "\"" + std::string(wanted) + "\"";
  if (matches.size() > 1) return Error{ErrorCode::kInvalidArgument, quoted + " is part of several models' names: " + joined(matches), "MODEL"};
  if (demo != nullptr) {
    return Error{ErrorCode::kNotFound, quoted + " is not on this machine; fetch it with `linnet get " + std::string(demo->alias) + "`", "MODEL"};
  }
  const std::string there = every.empty() ? "there are none; `linnet get demo` fetches a small one" : "there are " + joined(every);
  return Error{ErrorCode::kNotFound, "no file and no model named " + quoted + "; " + there, "MODEL"};
}

Result<std::string> resolve_model(std::string_view wanted) {
  LINNET_ASSIGN(const fs::path models, models_folder());
  return resolve_model(wanted, models);
}

}  // namespace linnet
