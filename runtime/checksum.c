/* What an artifact says of its own code and tables, compared with what they are. */
#include <string.h>

#include "internal.h"

/* Odd constants with bits spread evenly: fractions of square roots of primes. */
static const uint64_t multiplier = 0xbb67ae8584caa73bull, finisher = 0x3c6ef372fe94f82bull;
static const uint64_t offsets[4] = {0x6a09e667f3bcc909ull, 0xa54ff53a5f1d36f1ull, 0x510e527fade682d1ull,
                                    0x9b05688c2b3e6c1full};

static uint64_t word_at(const unsigned char* bytes) {
  uint64_t word;
  memcpy(&word, bytes, sizeof word);
  return word;
}
static uint64_t mix(uint64_t state, uint64_t word) {
  state = (state ^ word) * multiplier;
  return state << 29 | state >> 35;
}
static uint64_t finish(uint64_t state) {
  state = (state ^ state >> 32) * finisher;
  return ((state ^ state >> 29) * multiplier) ^ state >> 31;
}

uint64_t tn_checksum(const void* memory, uint64_t size, uint64_t seed) {
  const unsigned char* bytes = memory;
  uint64_t lanes[4]; /* four chains, so that the multiplications overlap */
  for (int i = 0; i < 4; ++i) lanes[i] = finish(seed + offsets[i]);
  uint64_t at = 0;
  for (; at + 32 <= size; at += 32)
    for (int i = 0; i < 4; ++i) lanes[i] = mix(lanes[i], word_at(bytes + at + 8 * i));
  unsigned char rest[32] = {0};
  if (size > at) memcpy(rest, bytes + at, size - at);
  uint64_t state = size;
  for (int i = 0; i < 4; ++i) state = finish(mix(state, mix(lanes[i], word_at(rest + 8 * i))));
  return state;
}

tenon_status tn_image_compare_checksums(const struct tn_source* source, const struct tn_image* image,
                                        const void* tables, const unsigned char* base) {
  uint64_t blocks = (image->weights_size + TN_CHECKSUM_BLOCK - 1) / TN_CHECKSUM_BLOCK;
  uint64_t parts[2]; /* of the tables, of the code; behind a header of two numbers and one for each block */
  if (image->checksums_size != 16 + 8 * blocks + sizeof parts) return TENON_OK; /* linked by other tools: it has none */
  tenon_status status =
      tn_read(source, image->checksums_offset + image->checksums_size - sizeof parts, parts, sizeof parts);
  if (status != TENON_OK) return status;
  uint64_t code = tn_checksum(NULL, 0, 2);
  for (uint32_t i = 0; i < image->load_count; ++i)
    if (image->loads[i].executable) code = tn_checksum(base + image->loads[i].address, image->loads[i].size, 2);
  if (parts[0] == tn_checksum(tables, image->tables_size, 1) && parts[1] == code) return TENON_OK;
  return tn_fail(TENON_INVALID_FILE, "its code or its tables are damaged; compile the program again");
}
