#include "weights/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "weights/quote.h"

namespace linnet {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian, and read as they lie");

constexpr std::uint64_t kKeyBytesMin = 8 + 1 + 4 + 1;             // length, one byte, type, u8
constexpr std::uint64_t kTensorBytesMin = 8 + 1 + 4 + 8 + 4 + 8;  // length, one byte, rank, one dimension, format, offset

std::string_view text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Indices 0 .. size - 1 in the order of `name_of`.
template <class NameOf>
std::vector<std::uint32_t> sorted_by(std::size_t size, NameOf name_of) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return name_of(a) < name_of(b); });
  return order;
}

// The first name that comes twice in a row; empty if none does.
template <class NameOf>
std::string_view first_duplicate(const std::vector<std::uint32_t>& order, NameOf name_of) {
  const auto same = [&](std::uint32_t a, std::uint32_t b) { return name_of(a) == name_of(b); };
  const auto at = std::adjacent_find(order.begin(), order.end(), same);
  return at == order.end() ? std::string_view() : name_of(*at);
}

}  // namespace

Result<GgufFile> GgufParser::parse() {
  LINNET_RETURN_IF_ERROR(header());
  LINNET_RETURN_IF_ERROR(metadata());
  LINNET_RETURN_IF_ERROR(alignment());
  LINNET_RETURN_IF_ERROR(tensors());
  return std::move(file_);
}

Error GgufParser::ends_inside(const std::string& what) const {
  return corrupt("the file ends at byte " + std::to_string(bytes_.size()) + ", inside " + what + " (incomplete download?)");
}

Status GgufParser::header() {
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  if (!cursor_.read(magic) || magic != 0x46554747U) return corrupt("not a GGUF file: it does not begin with \"GGUF\"");
  if (!cursor_.read(version)) return ends_inside("the header");
  LINNET_RETURN_IF_ERROR(check_version(version));
  file_.version_ = version;
  if (!cursor_.read(tensor_count_) || !cursor_.read(key_count_)) return ends_inside("the header");

  const auto check_count = [&](std::string_view field, std::uint64_t count, std::uint64_t limit,
                               std::uint64_t bytes_min) -> Status {
    const std::string says = "the header's " + std::string(field) + " is " + std::to_string(count);
    if (count > limit) return corrupt(says + "; the limit is " + std::to_string(limit));
    if (count > cursor_.remaining() / bytes_min) return corrupt(says + ", more than fits into the file");
    return {};
  };
  LINNET_RETURN_IF_ERROR(check_count("tensor count", tensor_count_, GgufLimits::kTensorsMax, kTensorBytesMin));
  return check_count("key count", key_count_, GgufLimits::kMetadataMax, kKeyBytesMin);
}

Status GgufParser::check_version(std::uint32_t version) const {
  if (version == 2 || version == 3) return {};
  const std::uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= 3) {
    return file_.error(ErrorCode::kUnsupported, "a big-endian GGUF file (version " + std::to_string(swapped) +
                                                    "); only little-endian files are supported");
  }
  return file_.error(ErrorCode::kUnsupported, "GGUF version " + std::to_string(version) + "; versions 2 and 3 are supported");
}

Status GgufParser::metadata() {
  for (std::uint64_t i = 0; i < key_count_; ++i) LINNET_RETURN_IF_ERROR(entry(i));
  return sort_keys();
}

Status GgufParser::entry(std::uint64_t index) {
  const std::string place = "key " + std::to_string(index) + " of the metadata";
  std::uint64_t bytes = 0;
  if (!cursor_.read(bytes)) return ends_inside(place);
  if (bytes == 0) return corrupt(place + " is empty");
  if (bytes > GgufLimits::kKeyBytesMax) {
    return corrupt(place + " has " + std::to_string(bytes) + " bytes; the limit is " + std::to_string(GgufLimits::kKeyBytesMax));
  }
  std::span<const std::byte> key;
  std::uint32_t type = 0;
  if (!cursor_.take(bytes, key) || !cursor_.read(type)) return ends_inside(place);
  GgufValue::Parts parts{.key = text_of(key)};
  if (!gguf_type_known(type)) {
    return file_.error(ErrorCode::kUnsupported,
                       "key " + quote(parts.key) + " has the unknown value type " + std::to_string(type));
  }
  parts.type = static_cast<GgufType>(type);
  LINNET_RETURN_IF_ERROR(value(parts));
  file_.metadata_.emplace_back(parts, file_.path_.get());
  return {};
}

Status GgufParser::value(GgufValue::Parts& parts) {
  if (parts.type == GgufType::kArray) return array(parts);
  std::uint64_t bytes = gguf_type_bytes(parts.type);
  const std::string place = "the value of key " + quote(parts.key);
  if (parts.type == GgufType::kString && !cursor_.read(bytes)) return ends_inside(place);
  if (bytes > cursor_.remaining()) {
    return corrupt(place + " has " + std::to_string(bytes) + " bytes, and the file has " + std::to_string(cursor_.remaining()) +
                   " more");
  }
  return cursor_.take(bytes, parts.data) ? Status() : ends_inside(place);
}

Status GgufParser::array(GgufValue::Parts& parts) {
  const std::string place = "the array of key " + quote(parts.key);
  std::uint32_t type = 0;
  std::uint64_t count = 0;
  if (!cursor_.read(type) || !cursor_.read(count)) return ends_inside(place);
  if (!gguf_type_known(type)) {
    return file_.error(ErrorCode::kUnsupported, place + " has elements of the unknown type " + std::to_string(type));
  }
  parts.element_type = static_cast<GgufType>(type);
  if (parts.element_type == GgufType::kArray) {
    return file_.error(ErrorCode::kUnsupported, place + " has arrays as elements; arrays of arrays are not supported");
  }
  const std::uint64_t element_bytes = gguf_type_bytes(parts.element_type);  // 0: strings
  const std::uint64_t element_bytes_min = element_bytes != 0 ? element_bytes : 8;
  if (count > cursor_.remaining() / element_bytes_min) {
    return corrupt(place + " has " + std::to_string(count) + " elements, more than fit into the file");
  }
  parts.size = static_cast<std::size_t>(count);
  if (element_bytes != 0) return cursor_.take(count * element_bytes, parts.data) ? Status() : ends_inside(place);

  const std::size_t begin = cursor_.position();
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t bytes = 0;
    std::span<const std::byte> element;
    if (!cursor_.read(bytes)) return ends_inside(place);
    if (!cursor_.take(bytes, element)) {
      return corrupt(place + ": element " + std::to_string(i) + " has " + std::to_string(bytes) + " bytes, and the file has " +
                     std::to_string(cursor_.remaining()) + " more");
    }
  }
  parts.data = bytes_.subspan(begin, cursor_.position() - begin);
  return {};
}

Status GgufParser::sort_keys() {
  const auto name_of = [&](std::uint32_t i) { return file_.metadata_[i].key(); };
  file_.keys_sorted_ = sorted_by(file_.metadata_.size(), name_of);
  const std::string_view twice = first_duplicate(file_.keys_sorted_, name_of);
  if (!twice.empty()) return corrupt("key " + quote(twice) + " comes more than once");
  return {};
}

Status GgufParser::alignment() {
  const GgufValue* value = file_.find("general.alignment");
  if (value == nullptr) return {};
  LINNET_ASSIGN(const std::int64_t given, value->as_int());
  if (given < GgufLimits::kAlignmentMin || given > GgufLimits::kAlignmentMax ||
      !std::has_single_bit(static_cast<std::uint64_t>(given))) {
    return value->error(ErrorCode::kCorrupt, "is " + std::to_string(given) + "; it must be a power of two from " +
                                                 std::to_string(GgufLimits::kAlignmentMin) + " to " +
                                                 std::to_string(GgufLimits::kAlignmentMax));
  }
  alignment_ = static_cast<std::uint64_t>(given);
  return {};
}

Status GgufParser::tensors() {
  for (std::uint64_t i = 0; i < tensor_count_; ++i) LINNET_RETURN_IF_ERROR(tensor(i));
  LINNET_RETURN_IF_ERROR(sort_tensors());
  const std::uint64_t data_begin = (cursor_.position() + alignment_ - 1) / alignment_ * alignment_;
  for (GgufTensor& tensor : file_.tensors_) LINNET_RETURN_IF_ERROR(place(tensor, data_begin));
  return check_overlap();
}

Status GgufParser::tensor(std::uint64_t index) {
  const std::string place = "entry " + std::to_string(index) + " of the table of tensors";
  std::uint64_t bytes = 0;
  if (!cursor_.read(bytes)) return ends_inside(place);
  if (bytes == 0 || bytes > GgufLimits::kTensorNameBytesMax) {
    return corrupt(place + " has a name of " + std::to_string(bytes) + " bytes; 1 to " +
                   std::to_string(GgufLimits::kTensorNameBytesMax) + " are allowed");
  }
  std::span<const std::byte> name;
  if (!cursor_.take(bytes, name)) return ends_inside(place);
  GgufTensor tensor{.name = text_of(name)};
  LINNET_RETURN_IF_ERROR(dimensions(tensor));
  if (!cursor_.read(tensor.gguf_type) || !cursor_.read(tensor.offset)) return ends_inside(place);
  tensor.dtype = dtype_from_gguf(tensor.gguf_type);
  file_.tensors_.push_back(tensor);
  return {};
}

Status GgufParser::dimensions(GgufTensor& tensor) {
  const std::string place = "tensor " + quote(tensor.name);
  std::uint32_t rank = 0;
  if (!cursor_.read(rank)) return ends_inside(place);
  if (rank == 0 || rank > GgufLimits::kDimensionsMax) {
    return corrupt(place + " has " + std::to_string(rank) + " dimensions; 1 to " + std::to_string(GgufLimits::kDimensionsMax) +
                   " are allowed");
  }
  tensor.rank = static_cast<std::int32_t>(rank);
  tensor.dims.fill(1);
  std::int64_t elements = 1;
  for (std::uint32_t d = 0; d < rank; ++d) {
    std::uint64_t size = 0;
    if (!cursor_.read(size)) return ends_inside(place);
    if (size == 0 || size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return corrupt(place + " has a dimension of " + std::to_string(size) + "; 1 to 2^63 - 1 are allowed");
    }
    tensor.dims[d] = static_cast<std::int64_t>(size);
    if (__builtin_mul_overflow(elements, tensor.dims[d], &elements)) {
      return corrupt(place + " has dimensions whose product passes 2^63 - 1, the last of them " + std::to_string(size));
    }
  }
  return {};
}

Status GgufParser::sort_tensors() {
  const auto name_of = [&](std::uint32_t i) { return file_.tensors_[i].name; };
  file_.tensors_sorted_ = sorted_by(file_.tensors_.size(), name_of);
  const std::string_view twice = first_duplicate(file_.tensors_sorted_, name_of);
  if (!twice.empty()) return corrupt("tensor " + quote(twice) + " comes more than once");
  return {};
}

// A format of unknown size is checked at its beginning only; it has no data view.
Status GgufParser::place(GgufTensor& tensor, std::uint64_t data_begin) const {
  const std::string place = "tensor " + quote(tensor.name);
  if (tensor.offset % alignment_ != 0) {
    return corrupt(place + " has offset " + std::to_string(tensor.offset) + ", no multiple of the alignment " +
                   std::to_string(alignment_));
  }
  const std::uint64_t available = data_begin < bytes_.size() ? bytes_.size() - data_begin : 0;
  std::size_t bytes = 0;
  if (tensor.dtype) {
    const auto rows = tensor.dims[1] * tensor.dims[2] * tensor.dims[3];  // no overflow: checked with dims[0] in dimensions()
    const std::optional<std::size_t> size = tensor_bytes(*tensor.dtype, rows, tensor.dims[0]);
    if (!size) {
      return corrupt(place + " has rows of " + std::to_string(tensor.dims[0]) + " elements and " + std::to_string(rows) +
                     " rows: no whole number of blocks of " + std::string(dtype_name(*tensor.dtype)) + ", or too large");
    }
    bytes = *size;
  }
  if (tensor.offset > available || bytes > available - tensor.offset) {
    return corrupt(place + " has " + std::to_string(bytes) + " bytes at offset " + std::to_string(tensor.offset) +
                   " of the data, and the file has " + std::to_string(available) + " bytes of data (incomplete download?)");
  }
  // Without a format there may be no data, and not even the padding before them.
  if (tensor.dtype) tensor.data = bytes_.subspan(static_cast<std::size_t>(data_begin + tensor.offset), bytes);
  return {};
}

Status GgufParser::check_overlap() const {
  const std::vector<GgufTensor>& tensors = file_.tensors_;
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(tensors[a].offset, tensors[a].data.size()) < std::pair(tensors[b].offset, tensors[b].data.size());
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const GgufTensor& before = tensors[order[i - 1]];
    const GgufTensor& after = tensors[order[i]];
    if (after.offset - before.offset < before.data.size()) {
      return corrupt("tensors " + quote(before.name) + " and " + quote(after.name) + " overlap at offset " +
                     std::to_string(after.offset));
    }
  }
  return {};
}

}  // namespace linnet
