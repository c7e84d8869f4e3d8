#include "responses/response_store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

namespace linnet {
namespace {

constexpr int kBusyTimeoutMs = 5'000;  // another process writes

constexpr char kSchema[] =
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = FULL;"
    "PRAGMA secure_delete = ON;"
    "CREATE TABLE IF NOT EXISTS responses ("
    "  id TEXT PRIMARY KEY, owner TEXT NOT NULL, created INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    "  response TEXT NOT NULL, items TEXT NOT NULL, output TEXT NOT NULL);"
    "CREATE INDEX IF NOT EXISTS responses_by_age ON responses (created, bytes);";

// One statement, finalized with its scope.
class Query {
 public:
  Query(sqlite3* database, std::string_view sql) {
    sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement_, nullptr);
  }
  ~Query() { sqlite3_finalize(statement_); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  Query& bind(const std::string& text) {
    sqlite3_bind_text64(statement_, ++bound_, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    return *this;
  }
  Query& bind(std::int64_t number) {
    sqlite3_bind_int64(statement_, ++bound_, number);
    return *this;
  }
  // SQLITE_ROW, SQLITE_DONE, or what went wrong.
  int step() { return statement_ == nullptr ? SQLITE_ERROR : sqlite3_step(statement_); }
  std::string text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }
  std::int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

std::int64_t bytes_of(const StoredResponse& response) {
  return static_cast<std::int64_t>(response.response.size() + response.items.size() + response.output.size());
}

// SQLite gives the files beside the database the permissions of the database itself.
Status make_private(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path folder = path.parent_path();
  if (std::filesystem::create_directories(folder, error)) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  }
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (error || file < 0 || ::fchmod(file, 0600) != 0) {
    const std::string why = error ? error.message() : std::strerror(errno);
    if (file >= 0) ::close(file);
    return Error{ErrorCode::kIo, "cannot write " + path.string() + ": " + why, path.string()};
  }
  ::close(file);
  return {};
}

}  // namespace

Result<std::unique_ptr<ResponseStore>> ResponseStore::open(const std::filesystem::path& path, const Clock& clock,
                                                           const ResponseStoreLimits& limits) {
  if (!path.empty()) LINNET_RETURN_IF_ERROR(make_private(path));
  sqlite3* database = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
  const int opened = sqlite3_open_v2(path.empty() ? ":memory:" : path.c_str(), &database, flags, nullptr);
  std::unique_ptr<ResponseStore> store(new ResponseStore(database, clock, limits));
  if (opened != SQLITE_OK) return store->failure("open");
  sqlite3_busy_timeout(database, kBusyTimeoutMs);
  if (sqlite3_exec(database, kSchema, nullptr, nullptr, nullptr) != SQLITE_OK) return store->failure("prepare");
  return store;
}

ResponseStore::ResponseStore(sqlite3* database, const Clock& clock, const ResponseStoreLimits& limits)
    : database_(database), clock_(clock), limits_(limits) {}

ResponseStore::~ResponseStore() { sqlite3_close(database_); }

Error ResponseStore::failure(const char* what) const {
  const char* file = database_ == nullptr ? nullptr : sqlite3_db_filename(database_, "main");
  const std::string name = file == nullptr || *file == '\0' ? "the stored responses" : file;
  const int code = sqlite3_errcode(database_);
  return {code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? ErrorCode::kCorrupt : ErrorCode::kIo,
          "cannot " + std::string(what) + " " + name + ": " + sqlite3_errmsg(database_), name};
}

// Drops what is too old, and then the oldest until `bytes` more fit.
Status ResponseStore::make_room(std::int64_t bytes) {
  const std::int64_t oldest = clock_.unix_time().count() - limits_.age_max_s;
  if (Query(database_, "DELETE FROM responses WHERE created < ?").bind(oldest).step() != SQLITE_DONE) return failure("clean");
  Query sum(database_, "SELECT COALESCE(SUM(bytes), 0) FROM responses");
  if (sum.step() != SQLITE_ROW) return failure("read");
  std::int64_t excess = sum.number(0) + bytes - limits_.bytes_max;
  while (excess > 0) {
    Query drop(
        database_,
        "DELETE FROM responses WHERE rowid = (SELECT rowid FROM responses ORDER BY created, rowid LIMIT 1) RETURNING bytes");
    if (drop.step() != SQLITE_ROW) return failure("clean");
    excess -= drop.number(0);
  }
  return {};
}

Status ResponseStore::put(const StoredResponse& response) {
  const std::int64_t bytes = bytes_of(response);
  if (bytes > limits_.bytes_max) {
    return Error{ErrorCode::kTooLarge,
                 "a response of " + std::to_string(bytes) + " bytes cannot be stored; all together may have " +
                     std::to_string(limits_.bytes_max) + ": send store false",
                 "store"};
  }
  const std::lock_guard lock(mutex_);
  if (sqlite3_exec(database_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) return failure("write");
  Status status = make_room(bytes);
  if (status.ok()) {
    Query insert(database_,
                 "INSERT INTO responses (id, owner, created, bytes, response, items, output) VALUES (?, ?, ?, ?, ?, ?, ?)");
    insert.bind(response.id).bind(response.owner).bind(clock_.unix_time().count()).bind(bytes);
    insert.bind(response.response).bind(response.items).bind(response.output);
    if (insert.step() != SQLITE_DONE) status = failure("write");
  }
  if (status.ok() && sqlite3_exec(database_, "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK) status = failure("write");
  if (!status.ok()) sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
  return status;
}

Result<std::optional<StoredResponse>> ResponseStore::get(const std::string& id, const std::string& owner) {
  const std::lock_guard lock(mutex_);
  Query query(database_, "SELECT response, items, output FROM responses WHERE id = ? AND owner = ? AND created >= ?");
  const int found = query.bind(id).bind(owner).bind(clock_.unix_time().count() - limits_.age_max_s).step();
  if (found == SQLITE_DONE) return std::optional<StoredResponse>();
  if (found != SQLITE_ROW) return failure("read");
  return std::optional(
      StoredResponse{.id = id, .owner = owner, .response = query.text(0), .items = query.text(1), .output = query.text(2)});
}

Result<bool> ResponseStore::remove(const std::string& id, const std::string& owner) {
  const std::lock_guard lock(mutex_);
  if (Query(database_, "DELETE FROM responses WHERE id = ? AND owner = ?").bind(id).bind(owner).step() != SQLITE_DONE) {
    return failure("write");
  }
  return sqlite3_changes(database_) > 0;
}

}  // namespace linnet
