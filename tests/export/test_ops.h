// A table of the operators that the small test programs use, made from their schemas alone.
#pragma once
#include "tenon/graph/op.h"

namespace tenon {

const OpTable& test_ops();
std::string data_path(const std::string& name);  // under tests/data

}  // namespace tenon
