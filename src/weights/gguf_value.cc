#include "weights/gguf_value.h"

#include <array>
#include <limits>

#include "weights/quote.h"

namespace linnet {
namespace {

struct TypeInfo {
  std::string_view name;
  std::size_t bytes;
};

// In the order of GgufType.
constexpr std::array<TypeInfo, 13> kTypes = {{{"u8", 1},
                                              {"i8", 1},
                                              {"u16", 2},
                                              {"i16", 2},
                                              {"u32", 4},
                                              {"i32", 4},
                                              {"f32", 4},
                                              {"bool", 1},
                                              {"string", 0},
                                              {"array", 0},
                                              {"u64", 8},
                                              {"i64", 8},
                                              {"f64", 8}}};

const TypeInfo& info_of(GgufType type) {
  const auto index = static_cast<std::size_t>(type);
  CHECK(index < kTypes.size());
  return kTypes[index];
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

bool is_integer(GgufType type) {
  return info_of(type).bytes != 0 && type != GgufType::kBool && type != GgufType::kFloat32 && type != GgufType::kFloat64;
}

bool is_float(GgufType type) { return type == GgufType::kFloat32 || type == GgufType::kFloat64; }

// `type` is an integer type. A u64 above 2^63 - 1 comes out negative.
std::int64_t load_int(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::kUint8:
      return load<std::uint8_t>(at);
    case GgufType::kInt8:
      return load<std::int8_t>(at);
    case GgufType::kUint16:
      return load<std::uint16_t>(at);
    case GgufType::kInt16:
      return load<std::int16_t>(at);
    case GgufType::kUint32:
      return load<std::uint32_t>(at);
    case GgufType::kInt32:
      return load<std::int32_t>(at);
    case GgufType::kUint64:
    case GgufType::kInt64:
      return load<std::int64_t>(at);
    default:
      CHECK_MSG(false, "not an integer type");
  }
}

double load_float(GgufType type, const std::byte* at) {
  return type == GgufType::kFloat32 ? static_cast<double>(load<float>(at)) : load<double>(at);
}

}  // namespace

std::string_view gguf_type_name(GgufType type) { return info_of(type).name; }
bool gguf_type_known(std::uint32_t type) { return type < kTypes.size(); }
std::size_t gguf_type_bytes(GgufType type) { return info_of(type).bytes; }

std::int64_t GgufInts::operator[](std::size_t i) const {
  CHECK(i < size());
  return load_int(type_, data_.data() + i * gguf_type_bytes(type_));
}

double GgufFloats::operator[](std::size_t i) const {
  CHECK(i < size());
  return load_float(type_, data_.data() + i * gguf_type_bytes(type_));
}

std::string GgufValue::type_text() const {
  if (!is_array()) return std::string(gguf_type_name(type()));
  return "array of " + std::string(gguf_type_name(element_type()));
}

Error GgufValue::error(ErrorCode code, std::string_view what) const {
  return {code, *path_ + ": key " + quote(key()) + " " + std::string(what), *path_};
}

Error GgufValue::mismatch(std::string_view wanted) const {
  return error(ErrorCode::kCorrupt, "is of type " + type_text() + "; it must be " + std::string(wanted));
}

Result<std::int64_t> GgufValue::as_int() const {
  if (!is_integer(type())) return mismatch("an integer");
  const std::int64_t value = load_int(type(), parts_.data.data());
  if (type() == GgufType::kUint64 && value < 0) {
    return error(ErrorCode::kCorrupt, "is " + std::to_string(static_cast<std::uint64_t>(value)) + "; at most " +
                                          std::to_string(std::numeric_limits<std::int64_t>::max()) + " is allowed");
  }
  return value;
}

Result<double> GgufValue::as_float() const {
  if (is_float(type())) return load_float(type(), parts_.data.data());
  if (!is_integer(type())) return mismatch("a number");
  LINNET_ASSIGN(const std::int64_t value, as_int());
  return static_cast<double>(value);
}

Result<bool> GgufValue::as_bool() const {
  if (type() != GgufType::kBool) return mismatch("a bool");
  const auto value = load<std::uint8_t>(parts_.data.data());
  if (value > 1) return error(ErrorCode::kCorrupt, "is a bool of value " + std::to_string(value) + "; it must be 0 or 1");
  return value == 1;
}

Result<std::string_view> GgufValue::as_string() const {
  if (type() != GgufType::kString) return mismatch("a string");
  return std::string_view(reinterpret_cast<const char*>(parts_.data.data()), parts_.data.size());
}

Result<GgufInts> GgufValue::as_ints() const {
  if (!is_array() || !is_integer(element_type())) return mismatch("an array of integers");
  const GgufInts ints(element_type(), parts_.data);
  if (element_type() == GgufType::kUint64) {
    for (std::size_t i = 0; i < ints.size(); ++i) {
      if (ints[i] < 0) {
        return error(ErrorCode::kCorrupt, "has " + std::to_string(static_cast<std::uint64_t>(ints[i])) + " at index " +
                                              std::to_string(i) + "; at most " +
                                              std::to_string(std::numeric_limits<std::int64_t>::max()) + " is allowed");
      }
    }
  }
  return ints;
}

Result<GgufFloats> GgufValue::as_floats() const {
  if (!is_array() || !is_float(element_type())) return mismatch("an array of f32 or f64");
  return GgufFloats(element_type(), parts_.data);
}

Result<GgufStrings> GgufValue::as_strings() const {
  if (!is_array() || element_type() != GgufType::kString) return mismatch("an array of strings");
  return GgufStrings(parts_.data, parts_.size);
}

}  // namespace linnet
