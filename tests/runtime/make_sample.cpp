// Writes the sample artifact:   make_sample FILE
// or the seeds for fuzzing:     make_sample --seeds FOLDER
#include <cstdio>
#include <exception>
#include <string_view>

#include "runtime/verify.h"
#include "tenon/base/file.h"
#include "tenon/package/artifact.h"
#include "tests/package/sample.h"

namespace tenon::package {
namespace {

void write_seeds(const std::string& folder) {
  write_sample(folder + "/sample.so", {.v4 = false});
  Artifact sample = Artifact::open(folder + "/sample.so");
  auto tables = reinterpret_cast<const char*>(sample.bytes().data() + sample.image().tables_offset);
  write_file_atomically(folder + "/sample.tables", std::string_view(tables, sample.image().tables_size));

  Tables t("seeds");
  Id n = t.symbol("n", 0, 9), i = t.symbol("i", 0, 9), r = t.symbol("r", 0, 0, TENON_REAL);
  Id x = t.input({.name = "x", .sizes = {Expr::symbol(n), 2}}, true),
     y = t.output({.name = "y", .sizes = {Expr::symbol(n), 2}});
  t.entry_size(n, x, 0);
  Id from = t.view(x, {.name = "row", .sizes = {2}}, Expr::symbol(i) * 8),
     to = t.view(y, {.name = "row", .sizes = {2}}, Expr::symbol(i) * 8);
  Id loop = t.body(), condition = t.body(), body = t.body();
  t.copy(loop, from, to);
  t.counted(Tables::main, i, Expr::symbol(n), loop);
  t.bind_element(condition, r, x, 0);
  t.store(body, x, 0, Expr::symbol(r, TENON_REAL) + Expr::real(1));
  t.repeat_while(Tables::main, condition,
                 less(Expr::symbol(r, TENON_REAL), to_real(select(equal(mod(Expr::symbol(n), 2), 0), 3, 4))), body);
  std::vector<std::byte> bytes = artifact_bytes({.tables = t}, {});
  write_file_atomically(folder + "/control.so",
                        std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::vector<std::byte> alone = t.bytes();
  write_file_atomically(folder + "/control.tables",
                        std::string_view(reinterpret_cast<const char*>(alone.data()), alone.size()));
}

}  // namespace
}  // namespace tenon::package

int main(int argc, char** argv) {
  try {
    if (argc == 2) return tenon::package::write_sample(argv[1]), 0;
    if (argc == 3 && std::string_view(argv[1]) == "--seeds") return tenon::package::write_seeds(argv[2]), 0;
  } catch (const std::exception& error) { std::fprintf(stderr, "%s\n", error.what()); }
  return 1;
}
