#include "weights/gguf.h"

#include <algorithm>

#include "base/check.h"
#include "weights/gguf_parser.h"
#include "weights/quote.h"

namespace linnet {
namespace {

struct NamedType {
  std::uint32_t gguf_type;
  std::string_view name;
};

// Formats that files may have and that are not read here.
constexpr NamedType kOtherTypes[] = {
    {9, "Q8_1"},   {10, "Q2_K"},   {11, "Q3_K"},  {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
    {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"}, {23, "IQ4_XS"},  {24, "I8"},     {25, "I16"},
    {26, "I32"},   {27, "I64"},    {28, "F64"},   {29, "IQ1_M"}, {34, "TQ1_0"},   {35, "TQ2_0"},  {39, "MXFP4"},
};

// The element of `items` whose name is `name`, by binary search through `order`; null if there is none.
template <class T, class NameOf>
const T* find_sorted(const std::vector<T>& items, const std::vector<std::uint32_t>& order, std::string_view name,
                     NameOf name_of) {
  const auto at = std::lower_bound(order.begin(), order.end(), name,
                                   [&](std::uint32_t i, std::string_view wanted) { return name_of(items[i]) < wanted; });
  if (at == order.end() || name_of(items[*at]) != name) return nullptr;
  return &items[*at];
}

}  // namespace

std::string gguf_tensor_type_text(std::uint32_t gguf_type) {
  if (const std::optional<DType> dtype = dtype_from_gguf(gguf_type)) return std::string(dtype_name(*dtype));
  for (const NamedType& type : kOtherTypes) {
    if (type.gguf_type == gguf_type) return std::string(type.name);
  }
  return "type " + std::to_string(gguf_type);
}

Result<GgufFile> GgufFile::open(const std::string& path) {
  LINNET_ASSIGN(MappedFile mapping, MappedFile::open(path));
  LINNET_ASSIGN(GgufFile file, parse(mapping.bytes(), path));
  file.mapping_ = std::move(mapping);
  return file;
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string path) {
  CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % static_cast<std::uintptr_t>(GgufLimits::kAlignmentMin) == 0);
  return GgufParser(bytes, std::move(path)).parse();
}

const GgufValue* GgufFile::find(std::string_view key) const {
  return find_sorted(metadata_, keys_sorted_, key, [](const GgufValue& value) { return value.key(); });
}

Result<const GgufValue*> GgufFile::require(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return error(ErrorCode::kCorrupt, "key " + quote(key) + " is missing");
  return value;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  return find_sorted(tensors_, tensors_sorted_, name, [](const GgufTensor& tensor) { return tensor.name; });
}

Result<Tensor> GgufFile::matrix(const GgufTensor& tensor) const {
  const std::string place = "tensor " + quote(tensor.name);
  if (!tensor.dtype) {
    std::string supported;
    for (const DTypeInfo& info : dtypes()) supported += (supported.empty() ? "" : ", ") + std::string(info.name);
    return error(ErrorCode::kUnsupported, place + " is of " + gguf_tensor_type_text(tensor.gguf_type) +
                                              ", which is not supported; supported are " + supported);
  }
  if (tensor.dims[2] != 1 || tensor.dims[3] != 1) {
    return error(ErrorCode::kUnsupported,
                 place + " has " + std::to_string(tensor.rank) + " dimensions; a matrix or a vector is wanted");
  }
  return Tensor{.dtype = *tensor.dtype, .rows = tensor.dims[1], .cols = tensor.dims[0], .data = tensor.data};
}

Error GgufFile::error(ErrorCode code, std::string_view what) const { return {code, *path_ + ": " + std::string(what), *path_}; }

}  // namespace linnet
