#include "backends/mlx/version.h"

#include <mlx/version.h>

#define LINNET_TEXT_INNER(x) #x
#define LINNET_TEXT(x) LINNET_TEXT_INNER(x)

namespace linnet::mlx_backend {
namespace {

constexpr char kBuiltVersion[] =
    LINNET_TEXT(MLX_VERSION_MAJOR) "." LINNET_TEXT(MLX_VERSION_MINOR) "." LINNET_TEXT(MLX_VERSION_PATCH);

}  // namespace

std::string loaded_version() { return mlx::core::version(); }

Status check_version() {
  const std::string loaded = loaded_version();
  if (loaded == kBuiltVersion) return {};
  return Error{ErrorCode::kUnsupported,
               "this Linnet was built against MLX " + std::string(kBuiltVersion) + " and libmlx is " + loaded +
                   "; install mlx==" + kBuiltVersion,
               "libmlx"};
}

}  // namespace linnet::mlx_backend
