// The numbers that stand for enums in PyTorch's schema of exported programs.
#pragma once
#include "tenon/io/json.h"
#include "tenon/tensor/dtype.h"

namespace tenon::serde {

DType read_dtype(Json code);
int64_t dtype_code(DType dtype);
Layout read_layout(Json code);
MemoryFormat read_memory_format(Json code);
Device read_device(Json device);
void write_device(JsonWriter& out, const Device& device);
/// A float: a number, or one of the strings Infinity, -Infinity, NaN.
double read_float(Json value);
void write_float(JsonWriter& out, double value);

/// The one member of a union such as {"as_int": 3}.
JsonMember read_union(Json value);

}  // namespace tenon::serde
