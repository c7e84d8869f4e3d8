#include "hub/hub_listing.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hub/hub_name.h"

namespace linnet {
namespace {

using Json = nlohmann::json;

bool is_hash(std::string_view text, std::size_t digits) {
  const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == digits && std::all_of(text.begin(), text.end(), digit);
}

Error corrupt(const std::string& what) {
  return {ErrorCode::kCorrupt, "the hub's list of files " + what + "; is HF_ENDPOINT a Hugging Face hub?", "HF_ENDPOINT"};
}

// A member's text; empty if there is none.
std::string text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

Result<HubFile> parse_file(const Json& entry) {
  if (!entry.is_object()) return corrupt("holds something that is no file");
  HubFile file{.path = text_of(entry, "rfilename")};
  // A path that leaves the folder is not repeated on the terminal either: it may hold control bytes.
  if (!is_path_below(file.path)) return corrupt("names a path outside the repository");
  const auto lfs = entry.find("lfs");
  const bool large = lfs != entry.end() && lfs->is_object();
  const Json& described = large ? *lfs : entry;
  const auto bytes = described.find("size");
  if (bytes == described.end() || !bytes->is_number_unsigned()) return corrupt("does not tell the size of " + file.path);
  file.bytes = bytes->get<std::uint64_t>();
  file.hash = text_of(described, large ? "sha256" : "blobId");
  if (!is_hash(file.hash, large ? 64 : 40)) return corrupt("does not tell the checksum of " + file.path);
  return file;
}

}  // namespace

Result<HubListing> parse_hub_listing(std::string_view json) {
  const Json reply = Json::parse(json, nullptr, false);
  if (!reply.is_object()) return corrupt("is not a JSON object");
  HubListing listing{.commit = text_of(reply, "sha")};
  if (!is_hash(listing.commit, 40)) return corrupt("does not tell its commit");
  const auto siblings = reply.find("siblings");
  if (siblings == reply.end() || !siblings->is_array()) return corrupt("is missing");
  for (const Json& entry : *siblings) {
    LINNET_ASSIGN(HubFile file, parse_file(entry));
    listing.files.push_back(std::move(file));
  }
  return listing;
}

}  // namespace linnet
