#include "tenon/package/eh_frame.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tenon/base/error.h"

namespace tenon::package {

namespace {

// DWARF for x86-64: register 7 is rsp, 6 is rbp, 16 the return address.
constexpr std::array<uint8_t, 24> common = {
    20,   0,    0,  0,  // length of what follows
    0,    0,    0,  0,  // it is a CIE
    1,                  // version
    'z',  'R',  0,      // an augmentation: how FDEs write addresses
    1,    0x78, 16,     // code in bytes, data in units of -8, the return address's register
    1,    0x1b,         // addresses relative to where they stand, 4 bytes
    0x0c, 7,    8,      // at entry the frame's address is rsp + 8
    0x90, 1,            // and the return address lies below it
    0,    0,            // padding
};
constexpr std::array<uint8_t, 8> frame_prologue = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5};
constexpr std::array<uint8_t, 11> frame_rules = {
    0x45,         // after endbr64; push rbp (5 bytes)
    0x0e, 16,     // the frame's address is rsp + 16
    0x86, 2,      // rbp lies 16 below it
    0x43,         // after mov rbp, rsp (3 bytes)
    0x0d, 6,      // the frame's address is rbp + 16
    0,    0,  0,  // padding
};
constexpr size_t description = 4 + 4 + 4 + 4 + 1 + frame_rules.size();  // one FDE
static_assert(description % 4 == 0);

bool has_frame_pointer(std::span<const std::byte> code) {
  return code.size() >= frame_prologue.size() &&
         std::memcmp(code.data(), frame_prologue.data(), frame_prologue.size()) == 0;
}

void put32(std::byte* at, uint64_t value) {
  auto low = static_cast<uint32_t>(value);
  std::memcpy(at, &low, sizeof low);
}
uint64_t distance(uint64_t to, uint64_t from) {
  auto d = static_cast<int64_t>(to - from);
  expect(d >= INT32_MIN && d <= INT32_MAX, "code further than 2 GiB from its unwind tables");
  return static_cast<uint64_t>(d);
}

}  // namespace

std::vector<std::byte> make_eh_frame(std::span<const UnwoundFunction> functions, uint64_t address) {
  std::vector<std::byte> out(common.size() + functions.size() * description + 4);
  std::memcpy(out.data(), common.data(), common.size());
  size_t at = common.size();
  for (const UnwoundFunction& function : functions) {
    std::byte* entry = out.data() + at;
    put32(entry, description - 4);
    put32(entry + 4, at + 4);  // back to the CIE
    put32(entry + 8, distance(function.address, address + at + 8));
    put32(entry + 12, function.code.size());
    entry[16] = std::byte{0};  // no augmentation data
    if (has_frame_pointer(function.code)) std::memcpy(entry + 17, frame_rules.data(), frame_rules.size());
    at += description;
  }
  return out;  // the last four bytes, zero, end it
}

std::vector<std::byte> make_eh_frame_header(std::span<const UnwoundFunction> functions, uint64_t address,
                                            uint64_t eh_frame_address) {
  std::vector<std::byte> out(12 + 8 * functions.size());
  const std::array<uint8_t, 4> kinds = {1, 0x1b, 0x03, 0x3b};
  std::memcpy(out.data(), kinds.data(), kinds.size());
  put32(out.data() + 4, distance(eh_frame_address, address + 4));
  put32(out.data() + 8, functions.size());
  std::vector<size_t> order(functions.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return functions[a].address < functions[b].address; });
  for (size_t i = 0; i < order.size(); ++i) {
    put32(out.data() + 12 + 8 * i, distance(functions[order[i]].address, address));
    put32(out.data() + 16 + 8 * i, distance(eh_frame_address + common.size() + order[i] * description, address));
  }
  return out;
}

}  // namespace tenon::package
