// Log lines to stderr, one line an event. Thread-safe. Texts of requests are never logged.
#pragma once

#include <optional>
#include <string_view>

namespace linnet {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

std::optional<LogLevel> parse_log_level(std::string_view name);  // debug, info, warning, error, off
void set_log_level(LogLevel level);                              // default: info
void log(LogLevel level, std::string_view line);

inline void log_debug(std::string_view line) { log(LogLevel::kDebug, line); }
inline void log_info(std::string_view line) { log(LogLevel::kInfo, line); }
inline void log_warning(std::string_view line) { log(LogLevel::kWarning, line); }
inline void log_error(std::string_view line) { log(LogLevel::kError, line); }

}  // namespace linnet
