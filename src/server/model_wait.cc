#include "server/model_wait.h"

#include <future>
#include <memory>
#include <utility>

#include "http/event_signal.h"

namespace linnet {

http::Task<Status> await_model_change(ModelLoader& loader, std::size_t model, ModelChange change, http::ResponseWriter& writer) {
  http::EventSignal signal = writer.make_signal();
  const auto promise = std::make_shared<std::promise<Status>>();
  std::future<Status> outcome = promise->get_future();
  ModelLoader::Done done = [promise, notify = signal.notifier()](Status status) {
    promise->set_value(std::move(status));
    notify();
  };
  if (change == ModelChange::kLoad) {
    loader.load(model, std::move(done));
  } else {
    loader.unload(model, std::move(done));
  }
  const http::Wake wake = co_await signal.wait();
  if (wake == http::Wake::kGone) co_return Status(Error{ErrorCode::kCancelled, "the client left", ""});
  co_return outcome.get();
}

}  // namespace linnet
