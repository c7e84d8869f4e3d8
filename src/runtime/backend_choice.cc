#include "runtime/backend_choice.h"

#include "backends/mlx/executor.h"

namespace linnet {

Result<BackendKind> choose_backend(const LoadOptions& options) {
  switch (options.backend) {
    case BackendKind::kMlx:
      return BackendKind::kMlx;
    case BackendKind::kCpu:
      if (options.device != DeviceKind::kGpu) return BackendKind::kCpu;
      return Error{ErrorCode::kInvalidArgument, "--backend cpu has no --device gpu; use --backend mlx", "--device"};
    case BackendKind::kAuto:
      break;
  }
  const bool gpu = options.device == DeviceKind::kGpu || (options.device == DeviceKind::kAuto && mlx_backend::gpu_available());
  return gpu ? BackendKind::kMlx : BackendKind::kCpu;
}

}  // namespace linnet
