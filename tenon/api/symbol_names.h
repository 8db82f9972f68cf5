// The names that PyTorch gives to the symbols of sizes.
#pragma once
#include <cstdint>
#include <string_view>

namespace tenon::v0::detail {

/// The number of a symbol by the text of where it is read (L['x'].size()[0]): the SHA-256 of it, modulo 100.
int symbol_number(std::string_view source);

}  // namespace tenon::v0::detail
