// Handlers that need a model which is not loaded.
#pragma once

#include <cstddef>

#include "http/response_writer.h"
#include "http/task.h"
#include "server/model_loader.h"

namespace linnet {

enum class ModelChange : std::uint8_t { kLoad, kUnload };

// Waits for the change without holding a thread. Errors: the change's; kCancelled if the client left: there is nobody to answer.
http::Task<Status> await_model_change(ModelLoader& loader, std::size_t model, ModelChange change, http::ResponseWriter& writer);

}  // namespace linnet
