#include "weights/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "json/read_json.h"
#include "weights/quote.h"

namespace linnet {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian, and read as they lie");

struct ElementType {
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array kElementTypes = {
    ElementType{"F32", 4}, ElementType{"F16", 2}, ElementType{"BF16", 2},    ElementType{"U32", 4},     ElementType{"BOOL", 1},
    ElementType{"U8", 1},  ElementType{"I8", 1},  ElementType{"F8_E5M2", 1}, ElementType{"F8_E4M3", 1}, ElementType{"F8_E8M0", 1},
    ElementType{"U16", 2}, ElementType{"I16", 2}, ElementType{"I32", 4},     ElementType{"F64", 8},     ElementType{"I64", 8},
    ElementType{"U64", 8}, ElementType{"C64", 8},
};

// The header's object, with one error for all that is wrong with it.
class Header {
 public:
  explicit Header(const SafetensorsFile& file) : file_(file) {}

  Result<SafetensorsTensor> tensor(const std::string& name, const Json& entry, std::span<const std::byte> data) const {
    const std::string place = "tensor " + quote(name);
    if (name.empty()) return corrupt("a tensor's name is empty");
    if (!entry.is_object()) return corrupt(place + " is described by no JSON object");
    SafetensorsTensor tensor{.name = name, .dtype = {}, .shape = {}, .data = {}};
    LINNET_ASSIGN(const std::int64_t element_bytes, dtype(place, entry, tensor));
    LINNET_ASSIGN(const std::uint64_t bytes, shape(place, entry, element_bytes, tensor));
    const auto offsets = entry.find("data_offsets");
    if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
        !(*offsets)[1].is_number_unsigned()) {
      return corrupt(place + " has no data_offsets of two numbers from 0");
    }
    const auto begin = (*offsets)[0].get<std::uint64_t>();
    const auto end = (*offsets)[1].get<std::uint64_t>();
    if (begin > end || end > data.size()) {
      return corrupt(place + " has data_offsets " + std::to_string(begin) + " to " + std::to_string(end) + ", and the file has " +
                     std::to_string(data.size()) + " bytes of data (incomplete download?)");
    }
    if (end - begin != bytes) {
      return corrupt(place + " has a shape of " + std::to_string(bytes) + " bytes, and data_offsets of " +
                     std::to_string(end - begin));
    }
    tensor.data = data.subspan(begin, bytes);
    return tensor;
  }

 private:
  Error corrupt(const std::string& what) const { return file_.error(ErrorCode::kCorrupt, what); }

  Result<std::int64_t> dtype(const std::string& place, const Json& entry, SafetensorsTensor& tensor) const {
    const auto found = entry.find("dtype");
    if (found == entry.end() || !found->is_string()) return corrupt(place + " has no dtype");
    tensor.dtype = found->get<std::string>();
    for (const ElementType& type : kElementTypes) {
      if (type.name == tensor.dtype) return type.bytes;
    }
    return file_.error(ErrorCode::kUnsupported, place + " has the unknown dtype " + quote(tensor.dtype));
  }

  // Bytes of the whole tensor.
  Result<std::uint64_t> shape(const std::string& place, const Json& entry, std::int64_t element_bytes,
                              SafetensorsTensor& tensor) const {
    const auto found = entry.find("shape");
    if (found == entry.end() || !found->is_array()) return corrupt(place + " has no shape");
    if (found->size() > SafetensorsLimits::kDimensionsMax) {
      return corrupt(place + " has " + std::to_string(found->size()) + " dimensions; at most " +
                     std::to_string(SafetensorsLimits::kDimensionsMax) + " are allowed");
    }
    std::int64_t bytes = element_bytes;
    bool empty = false;
    for (const Json& size : *found) {
      if (!size.is_number_unsigned() || size.get<std::uint64_t>() > std::uint64_t{1} << 62U) {
        return corrupt(place + " has the dimension " + size.dump().substr(0, 40) + "; whole numbers from 0 to 2^62 are allowed");
      }
      tensor.shape.push_back(size.get<std::int64_t>());
      empty = empty || tensor.shape.back() == 0;
      // Not even a product that a later 0 would hide may overflow.
      if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(tensor.shape.back(), 1), &bytes)) {
        return corrupt(place + " has a shape whose bytes pass 2^63 - 1");
      }
    }
    return empty ? 0 : static_cast<std::uint64_t>(bytes);
  }

  const SafetensorsFile& file_;
};

// Every byte of the data belongs to one tensor.
std::optional<std::string> tiling_problem(std::span<const SafetensorsTensor> tensors, std::span<const std::byte> data) {
  std::vector<const SafetensorsTensor*> order;
  for (const SafetensorsTensor& tensor : tensors) {
    if (!tensor.data.empty()) order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(),
            [](const SafetensorsTensor* a, const SafetensorsTensor* b) { return a->data.data() < b->data.data(); });
  const std::byte* next = data.data();
  for (const SafetensorsTensor* tensor : order) {
    const std::string at = "tensor " + quote(tensor->name) + " begins at byte " +
                           std::to_string(tensor->data.data() - data.data()) +
                           " of the data, and the one before it ends at byte " + std::to_string(next - data.data());
    if (tensor->data.data() < next) return at + ": they overlap";
    if (tensor->data.data() > next) return at + ": bytes between them belong to none";
    next += tensor->data.size();
  }
  if (next == data.data() + data.size()) return std::nullopt;
  return "the last tensor ends at byte " + std::to_string(next - data.data()) + " of the data, and the file has " +
         std::to_string(data.size()) + " bytes of data";
}

}  // namespace

std::string tensor_text(const SafetensorsTensor& tensor) {
  std::string text = "tensor " + quote(tensor.name) + " (" + tensor.dtype + " [";
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(tensor.shape[i]);
  return text + "])";
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  LINNET_ASSIGN(MappedFile mapping, MappedFile::open(path));
  LINNET_ASSIGN(SafetensorsFile file, parse(mapping.bytes(), path));
  file.mapping_.push_back(std::move(mapping));
  return file;
}

Result<SafetensorsFile> SafetensorsFile::parse(std::span<const std::byte> bytes, std::string path) {
  SafetensorsFile file(std::move(path));
  const auto corrupt = [&](const std::string& what) { return file.error(ErrorCode::kCorrupt, what); };
  std::uint64_t header_bytes = 0;
  if (bytes.size() < sizeof header_bytes)
    return corrupt("not a safetensors file: it has " + std::to_string(bytes.size()) + " bytes");
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  const std::span<const std::byte> rest = bytes.subspan(sizeof header_bytes);
  if (header_bytes < 2 || header_bytes > SafetensorsLimits::kHeaderBytesMax) {
    return corrupt("not a safetensors file: its header would have " + std::to_string(header_bytes) + " bytes; 2 to " +
                   std::to_string(SafetensorsLimits::kHeaderBytesMax) + " are allowed");
  }
  if (header_bytes > rest.size()) {
    return corrupt("the header has " + std::to_string(header_bytes) + " bytes, and the file has " + std::to_string(rest.size()) +
                   " more (incomplete download?)");
  }
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), header_bytes);
  if (text[0] != '{') return corrupt("not a safetensors file: its header does not begin with '{'");
  const JsonLimits limits{.depth_max = 3,
                          .elements_max = SafetensorsLimits::kTensorsMax * 16,
                          .object_keys_max = SafetensorsLimits::kTensorsMax + 1,
                          .subject = "the header"};
  const Result<Json> header = read_json(text, limits);
  if (!header.ok()) {
    return corrupt(header.error().message + (header.error().param.empty() ? "" : " " + quote(header.error().param)));
  }
  const std::span<const std::byte> data = rest.subspan(header_bytes);
  for (const auto& [name, entry] : header->items()) {
    if (name == "__metadata__") continue;
    LINNET_ASSIGN(SafetensorsTensor tensor, Header(file).tensor(name, entry, data));
    file.tensors_.push_back(std::move(tensor));
  }
  if (const std::optional<std::string> problem = tiling_problem(file.tensors_, data)) return corrupt(*problem);
  std::sort(file.tensors_.begin(), file.tensors_.end(),
            [](const SafetensorsTensor& a, const SafetensorsTensor& b) { return a.name < b.name; });
  return file;
}

const SafetensorsTensor* SafetensorsFile::find(std::string_view name) const {
  const auto at = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                   [](const SafetensorsTensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return at == tensors_.end() || at->name != name ? nullptr : &*at;
}

std::vector<MappedFile> SafetensorsFile::take_mapping() { return std::move(mapping_); }

Error SafetensorsFile::error(ErrorCode code, std::string_view what) const {
  return {code, path_ + ": " + std::string(what), path_};
}

}  // namespace linnet
