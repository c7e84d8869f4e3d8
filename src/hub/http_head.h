// The head of a hub's reply, as far as a fetch looks at it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace linnet {

struct HttpHead {
  long status = 0;
  // The hash that the hub itself gives the file (X-Linked-Etag, or the ETag of a reply without redirect); empty: it gives none.
  // Those to whom it redirects have etags of their own making.
  std::string etag;
  std::optional<std::uint64_t> range_first;  // of a 206's Content-Range
  std::optional<std::uint64_t> range_total;
  std::optional<std::chrono::seconds> retry_after;
  std::string error_code;     // "GatedRepo", "RepoNotFound", "RevisionNotFound", "EntryNotFound"
  std::string error_message;  // printable, short
  bool redirected = false;

  // One line of the head, with or without its line end. A status line begins a reply: after a redirect only what the hub said
  // about the file stays.
  void add_line(std::string_view line);
};

}  // namespace linnet
