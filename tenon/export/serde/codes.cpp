#include "tenon/export/serde/codes.h"

#include <cmath>
#include <limits>

namespace tenon::serde {
namespace {
struct DTypeCode {
  int64_t code;
  DType dtype;
};
constexpr DTypeCode dtype_codes[] = {
    {1, DType::u8},           {2, DType::i8},           {3, DType::i16},         {4, DType::i32},
    {5, DType::i64},          {6, DType::f16},          {7, DType::f32},         {8, DType::f64},
    {9, DType::c32},          {10, DType::c64},         {11, DType::c128},       {12, DType::boolean},
    {13, DType::bf16},        {28, DType::u16},         {29, DType::f8_e4m3fn},  {30, DType::f8_e5m2},
    {31, DType::f8_e4m3fnuz}, {32, DType::f8_e5m2fnuz}, {33, DType::f8_e8m0fnu}, {34, DType::u32},
    {35, DType::u64},
};
}  // namespace

DType read_dtype(Json code) {
  int64_t number = code.as_int();
  for (const DTypeCode& c : dtype_codes)
    if (c.code == number) return c.dtype;
  code.fail("expected the number of a dtype (1 to 13 or 28 to 35), found ", number);
}

int64_t dtype_code(DType dtype) {
  for (const DTypeCode& c : dtype_codes)
    if (c.dtype == dtype) return c.code;
  unreachable();
}

Layout read_layout(Json code) {
  int64_t number = code.as_int();
  code.require(number >= 0 && number <= 7, "expected the number of a layout (0 to 7), found ", number);
  return static_cast<Layout>(number);
}

MemoryFormat read_memory_format(Json code) {
  int64_t number = code.as_int();
  code.require(number >= 0 && number <= 4, "expected the number of a memory format (0 to 4), found ", number);
  return static_cast<MemoryFormat>(number);
}

Device read_device(Json device) {
  Json said = device.at("type");
  std::optional<DeviceType> type = device_type_of(said.as_string());
  said.require(type.has_value(), "expected a kind of device such as cpu or cuda, found ", quoted(said.as_string()));
  Device out{.type = *type};
  if (auto index = device.given("index")) {
    int64_t number = index->as_int();
    index->require(number >= -1 && number < 1024, "expected a device index, found ", number);
    out.index = static_cast<int>(number);
  }
  return out;
}

void write_device(JsonWriter& out, const Device& device) {
  out.begin_object();
  out.field("type", name(device.type));
  out.key("index");
  if (device.index >= 0) out.integer(device.index);
  else out.null();
  out.end_object();
}

double read_float(Json value) {
  if (!value.is_string()) return value.as_double();
  std::string_view s = value.as_string();
  if (s == "Infinity") return std::numeric_limits<double>::infinity();
  if (s == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (s == "NaN") return std::numeric_limits<double>::quiet_NaN();
  value.fail("expected a number, \"Infinity\", \"-Infinity\" or \"NaN\", found ", quoted(s));
}

void write_float(JsonWriter& out, double value) {
  if (std::isfinite(value)) out.real(value);
  else out.string(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

JsonMember read_union(Json value) {
  auto members = value.members();
  value.require(members.size() == 1, "expected an object with one key that says what it is, found ", members.size(),
                " keys");
  return *members.begin();
}

}  // namespace tenon::serde
