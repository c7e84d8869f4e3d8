// Errors as values: what every fallible call of the library returns.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace linnet {

// What kind of trouble it was. One table (api/) maps a code to an HTTP status; nothing else decides on the text of a message.
enum class ErrorCode {
  kInvalidArgument,        // the caller's input is wrong; `Error::param` names the field or flag
  kNotFound,               // a model, file or object that does not exist
  kUnsupported,            // understood, and not offered
  kContextLengthExceeded,  // the prompt, or prompt + max_tokens, can never fit
  kTooLarge,               // a size limit was passed
  kQueueFull,              // come back later
  kCancelled,              // the caller withdrew the request, or left
  kDeadlineExceeded,       // the request's own time limit passed
  kCorrupt,                // a file does not say what its format promises
  kIo,                     // the system refused a read, write or connection
  kUnavailable,            // shutting down, or not ready yet
  kInternal,               // a fault of ours
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // names the value, the limit and what to do
  std::string param;    // field, flag or file the message is about; may be empty

  bool operator==(const Error&) const = default;
};

// A value of T or an Error. `value()` on an error, and `error()` on a value, are bugs and abort.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return *checked(std::get_if<0>(&state_)); }
  const T& value() const& { return *checked(std::get_if<0>(&state_)); }
  T&& value() && { return std::move(*checked(std::get_if<0>(&state_))); }
  const Error& error() const { return *checked(std::get_if<1>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  template <class P>
  static P* checked(P* pointer) {
    if (pointer == nullptr) __builtin_trap();
    return pointer;
  }
  std::variant<T, Error> state_;
};

// Success or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    if (!error_) __builtin_trap();
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace linnet

// Evaluates `expression` (a Status or Result); returns its error from the enclosing function.
#define LINNET_RETURN_IF_ERROR(expression)                          \
  do {                                                              \
    if (auto linnet_status_ = (expression); !linnet_status_.ok()) { \
      return linnet_status_.error();                                \
    }                                                               \
  } while (false)

#define LINNET_CONCAT_INNER(a, b) a##b
#define LINNET_CONCAT(a, b) LINNET_CONCAT_INNER(a, b)

// LINNET_ASSIGN(auto x, f()): x becomes the value of f(); its error is returned from the enclosing function.
#define LINNET_ASSIGN(declaration, expression) \
  LINNET_ASSIGN_IMPL(LINNET_CONCAT(linnet_result_, __LINE__), declaration, expression)
#define LINNET_ASSIGN_IMPL(temporary, declaration, expression) \
  auto temporary = (expression);                               \
  if (!temporary.ok()) return temporary.error();               \
  declaration = std::move(temporary).value()
