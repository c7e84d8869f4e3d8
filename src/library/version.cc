#include "linnet/version.h"

namespace linnet {

const char* version() { return kVersion; }

}  // namespace linnet
