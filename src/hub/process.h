// Running another program.
#pragma once

#include <string>
#include <vector>

#include "linnet/status.h"

namespace linnet {

// Runs argv[0], found on PATH, without a shell, and waits. What it prints goes to this process's stderr. Error kIo: it could not
// be started, or ended with another status than 0; the message begins with `trouble`.
Status run_process(const std::vector<std::string>& argv, const std::string& trouble);

}  // namespace linnet
