// The responses that later requests may name, on this machine's disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "linnet/status.h"

struct sqlite3;

namespace linnet {

struct StoredResponse {
  std::string id;
  std::string owner;     // who may read it: a digest of the API key; empty where no keys are used
  std::string response;  // the response object, as the client saw it
  std::string items;     // what the model read: input items of this and earlier turns, an array
  std::string output;    // what it answered: output items, an array

  bool operator==(const StoredResponse&) const = default;
};

struct ResponseStoreLimits {
  std::int64_t bytes_max = std::int64_t{256} << 20;  // of all texts; the oldest go first
  std::int64_t age_max_s = std::int64_t{30} * 24 * 3600;
};

// Durable: what put() has returned for survives a crash of the process. Thread-safe; several processes may share one file.
// Its folder is made 0700 and its file 0600.
class ResponseStore {
 public:
  // `path`: of the database, made if need be; empty: in memory, for as long as this lives. `clock` outlives the store. Errors:
  // kIo, kCorrupt naming the file.
  static Result<std::unique_ptr<ResponseStore>> open(const std::filesystem::path& path, const Clock& clock,
                                                     const ResponseStoreLimits& limits = {});
  ~ResponseStore();
  ResponseStore(const ResponseStore&) = delete;
  ResponseStore& operator=(const ResponseStore&) = delete;

  // Errors: kIo; kTooLarge for one that is larger than all may be.
  Status put(const StoredResponse& response);
  // Empty: there is none, it is too old, or it is another owner's. Errors: kIo.
  Result<std::optional<StoredResponse>> get(const std::string& id, const std::string& owner);
  // Whether there was one. Errors: kIo.
  Result<bool> remove(const std::string& id, const std::string& owner);

 private:
  ResponseStore(sqlite3* database, const Clock& clock, const ResponseStoreLimits& limits);
  Error failure(const char* what) const;
  Status make_room(std::int64_t bytes);

  sqlite3* database_;  // owned
  const Clock& clock_;
  const ResponseStoreLimits limits_;
  std::mutex mutex_;
};

}  // namespace linnet
