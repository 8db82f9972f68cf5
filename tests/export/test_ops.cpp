#include "tests/export/test_ops.h"

#include <map>
#include <memory>

#include "tenon/base/file.h"

namespace tenon {
namespace {

class TestOps : public OpTable {
 public:
  TestOps() {
    for (const std::string& line : split(read_file(TENON_EXPORT_SCHEMAS), '\n'))
      if (!line.empty()) {
        Schema schema = parse_schema(line);
        std::string target = text("torch.ops.", schema.space(), ".", schema.base(), ".", schema.overload());
        add(std::move(schema), OpKind::general, target);
      }
    add_number_op("add", {.kinds = {sym::Kind::add}, .sign = " + "});
    add_number_op("mul", {.kinds = {sym::Kind::mul}, .sign = " * "});
    add_number_op("sub", {.sign = " - "});
    add_number_op("floordiv", {.sign = " // "});
    add_number_op("mod", {.sign = " % "});
    add_number_op("eq", {.sign = " == "});
    add_number_op("ne", {.sign = " != "});
    add_number_op("lt", {.sign = " < "});
    add_number_op("le", {.sign = " <= "});
    add_number_op("gt", {.sign = " > "});
    add_number_op("ge", {.sign = " >= "});
    for (const char* name : {"wrap_with_set_grad_enabled", "cond"})
      add(Schema{.name = text("higher_order::", name)}, OpKind::structural, text("torch.ops.higher_order.", name));
  }
  const Op* find(std::string_view name) const override {
    auto found = ops_.find(std::string(name));
    return found == ops_.end() ? nullptr : found->second.get();
  }
  const Op* computing(sym::Expr e) const override {
    for (const auto& [target, op] : ops_)
      if (op->notation.computes(e)) return op.get();
    return nullptr;
  }
  const Op* measuring(Measure what) const override {
    return what == Measure::size ? find("torch.ops.aten.sym_size.int") : nullptr;
  }

 private:
  void add_number_op(const char* name, Notation notation) {
    std::string target = text("_operator.", name);
    add(parse_schema(text("operator::", name, "(Scalar a, Scalar b) -> Scalar")), OpKind::symbolic, target);
    ops_[target]->notation = notation;
  }
  void add(Schema schema, OpKind kind, std::string target) {
    auto op = std::make_unique<Op>();
    op->schema = std::move(schema);
    op->kind = kind;
    op->target = target;
    ops_[target] = std::move(op);
  }
  std::map<std::string, std::unique_ptr<Op>> ops_;
};

}  // namespace

const OpTable& test_ops() {
  static const TestOps ops;
  return ops;
}

std::string data_path(const std::string& name) { return text(TENON_TEST_DATA, "/", name); }

}  // namespace tenon
