#include "tenon/api/symbol_names.h"

#include <array>
#include <bit>
#include <cmath>
#include <string>

namespace tenon::v0::detail {
namespace {

using Words = std::array<uint32_t, 64>;

/// The first 32 bits of the fractional parts of roots of the first primes, from which FIPS 180-4 takes its constants.
template <size_t count>
std::array<uint32_t, count> fractions(bool cube_roots) {
  std::array<uint32_t, count> out{};
  size_t found = 0;
  for (unsigned n = 2; found < count; ++n) {
    bool prime = true;
    for (unsigned d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
    if (!prime) continue;
    long double root = cube_roots ? std::cbrt(static_cast<long double>(n)) : std::sqrt(static_cast<long double>(n));
    out[found++] = static_cast<uint32_t>((root - std::floor(root)) * 4294967296.0L);
  }
  return out;
}

void add_block(std::array<uint32_t, 8>& state, const unsigned char* block) {
  static const Words constants = fractions<64>(true);
  Words w{};
  for (size_t i = 0; i < 16; ++i)
    for (size_t k = 0; k < 4; ++k) w[i] = w[i] << 8 | block[4 * i + k];
  for (size_t i = 16; i < 64; ++i) {
    uint32_t a = w[i - 15], b = w[i - 2];
    uint32_t small0 = std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3;
    uint32_t small1 = std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10;
    w[i] = w[i - 16] + small0 + w[i - 7] + small1;
  }
  std::array<uint32_t, 8> v = state;
  for (size_t i = 0; i < 64; ++i) {
    uint32_t big1 = std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25);
    uint32_t big0 = std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22);
    uint32_t t1 = v[7] + big1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + constants[i] + w[i];
    uint32_t t2 = big0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    v = {t1 + t2, v[0], v[1], v[2], v[3] + t1, v[4], v[5], v[6]};
  }
  for (size_t i = 0; i < 8; ++i) state[i] += v[i];
}

}  // namespace

int symbol_number(std::string_view source) {
  std::string padded(source);
  padded += '\x80';
  padded.resize((padded.size() + 8 + 63) / 64 * 64 - 8);
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>(uint64_t{source.size()} * 8 >> shift);
  std::array<uint32_t, 8> state = fractions<8>(false);
  for (size_t at = 0; at < padded.size(); at += 64)
    add_block(state, reinterpret_cast<const unsigned char*>(padded.data()) + at);
  uint64_t number = 0;
  for (uint32_t word : state) number = (number << 32 | word) % 100;
  return static_cast<int>(number);
}

}  // namespace tenon::v0::detail
