#include "hub/process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

extern char** environ;

namespace linnet {

Status run_process(const std::vector<std::string>& argv, const std::string& trouble) {
  CHECK(!argv.empty());
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, argv[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return Error{ErrorCode::kIo, trouble + ": cannot run " + argv[0] + ": " + std::strerror(failed), argv[0]};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Error{ErrorCode::kIo, trouble + ": " + std::strerror(errno), argv[0]};
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const std::string how =
      WIFEXITED(status) ? "status " + std::to_string(WEXITSTATUS(status)) : "signal " + std::to_string(WTERMSIG(status));
  return Error{ErrorCode::kIo, trouble + ": " + argv[0] + " ended with " + how, argv[0]};
}

}  // namespace linnet
