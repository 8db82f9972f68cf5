// Reads an artifact with the reader of `tenon show` and the loader's checks. The input is a whole file, or, since few
// mutations of one get past its headers, tables alone. What passes is printed and its expressions are evaluated.
#include "runtime/verify.h"
#include "tenon/package/artifact.h"
#include "tests/fuzz/fuzz.h"

extern "C" {
union tn_value {
  int64_t i;
  double d;
};
const char* tn_evaluate(const struct tn_tables* tables, uint32_t expr, const union tn_value* symbols,
                        union tn_value* value);
}

namespace tenon {
namespace {

void evaluate_all(const tn_tables& tables) {
  std::vector<tn_value> symbols(tables.header->symbols.count + 1);
  for (size_t i = 0; i < symbols.size(); ++i) symbols[i].i = static_cast<int64_t>(i * 0x9e3779b97f4a7c15ull);
  for (uint32_t e = 0; e < tables.header->exprs.count; ++e) {
    tn_value value;
    (void)tn_evaluate(&tables, e, symbols.data(), &value);
  }
}

void read_tables(FuzzBytes bytes) {
  std::vector<uint64_t> aligned((bytes.size() + 7) / 8);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(aligned.data()));
  tn_tables tables;
  if (tn_tables_verify(aligned.data(), bytes.size(), &tables) == TENON_OK) evaluate_all(tables);
}

}  // namespace

void fuzz(FuzzBytes bytes) {
  if (!package::looks_like_elf(bytes)) return read_tables(bytes);
  package::Artifact artifact = package::Artifact::parse(bytes, "fuzz");
  claim(!package::to_text(artifact).empty());
  evaluate_all(artifact.tables());
  // The seal does not hold for mutated files: everything behind it is what is looked for here.
  try {
    artifact.verify_checksums();
  } catch (const Error&) {}
}
}  // namespace tenon
