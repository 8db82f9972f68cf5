#include "tests/hostile/generator.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/sym/evaluate.h"
#include "tenon/sym/print.h"
#include "tenon/trace/trace.h"
#include "tests/hostile/program_text.h"

namespace tenon {

uint8_t Choices::byte() {
  if (bytes_.empty()) return 0;
  auto value = static_cast<uint8_t>(bytes_.front());
  bytes_ = bytes_.subspan(1);
  return value;
}

size_t Choices::below(size_t count) {
  if (count <= 1) return 0;
  size_t value = byte();
  if (count > 256) value |= static_cast<size_t>(byte()) << 8;
  return value % count;
}

namespace {

constexpr int64_t hint_of_s0 = 3;

/// An argument twice: as the file has it, and as a rule sees it.
struct Drawn {
  std::string json;
  CallArg call;
};

struct Named {
  std::string name;
  TensorMeta meta;
};
struct NamedNumber {
  std::string name;
  SymInt expr;
};

const std::vector<const Op*>& operators() {
  static const std::vector<const Op*> all = [] {
    std::vector<const Op*> out = registry().all();
    size_t plain = out.size();
    for (size_t i = 0; i < plain; ++i)  // in-place forms too
      if (out[i]->kind != OpKind::symbolic && out[i]->schema.space() == "aten")
        if (const Op* op = registry().find(text("aten::", out[i]->schema.base(), "_.", out[i]->schema.overload())))
          out.push_back(op);
    return out;
  }();
  return all;
}

std::string number_json(double value) {
  if (std::isnan(value)) return R"("NaN")";
  if (std::isinf(value)) return value > 0 ? R"("Infinity")" : R"("-Infinity")";
  return text(value);
}

std::string expr_json(SymInt e) {
  if (e.is_int()) return text(R"({"as_int": )", e.as_int(), "}");
  std::string hint = e.is_symbol() && e.name() == "s0" ? text(R"({"as_int": )", hint_of_s0, "}") : "null";
  return text(R"({"as_expr": {"expr_str": )", json_string(sym::to_srepr(e)), R"(, "hint": )", hint, "}}");
}

class Generator {
 public:
  Generator(Choices& choices, bool stateful) : choices_(choices), stateful_(stateful) {
    shapes_.constrain(s0_, {2, 10});
  }

  std::string run() {
    ShapesScope scope(&shapes_);
    ProgramText p;
    p.range("s0", 2, 10);
    ranged_.insert("s0");
    size_t inputs = 1 + choices_.below(3);
    for (size_t i = 0; i < inputs; ++i) {
      TensorMeta meta = drawn_meta();
      std::string name = text("x", i);
      if (!stateful_ || i + 1 == inputs || !is_static(meta)) p.user_input(name, meta);
      else if (is_floating(meta.dtype)) p.parameter(name, meta);
      else p.buffer(name, meta);
      pool_.push_back({name, meta});
    }
    size_t nodes = 1 + choices_.below(6);
    for (size_t i = 0; i < nodes && !choices_.used_up(); ++i) node(p, 0);
    for (const std::string& symbol : fresh_) p.range(symbol, 0, 1'000'000);
    size_t outputs = 1 + choices_.below(2);
    for (size_t i = 0; i < outputs; ++i) p.user_output(pool_[pool_.size() - 1 - choices_.below(pool_.size())].name);
    return p.program_json();
  }

 private:
  int64_t small() {
    static constexpr int64_t values[] = {0, 1, 2, 3, -1, -2, 4, 5, 1, 0, 2, 8, -3, 7, 1'000'000, int64_t{1} << 40};
    size_t which = choices_.below(64);
    return which < 60 ? values[which % 14] : values[14 + which % 2];
  }

  TensorMeta drawn_meta() {
    static constexpr DType dtypes[] = {DType::f32, DType::f32, DType::f32, DType::i64, DType::boolean, DType::f64,
                                       DType::f32, DType::i32, DType::u8,  DType::f16, DType::bf16,    DType::c64};
    static constexpr int64_t sizes[] = {2, 3, 1, 4, 2, 3, 0, 5};
    Sizes list;
    size_t rank = choices_.below(5);
    for (size_t i = 0; i < rank; ++i)
      list.push_back(choices_.one_in(12) ? s0_ : SymInt(choices_.of(std::span<const int64_t>(sizes))));
    TensorMeta meta = make_meta(choices_.of(std::span<const DType>(dtypes)), list);
    if (meta.dtype == DType::c64 && choices_.one_in(3)) meta.dtype = DType::c128;
    if (rank > 1 && choices_.one_in(8)) std::swap(meta.strides[0], meta.strides[1]);
    return meta;
  }

  static bool is_static(const TensorMeta& meta) {
    return std::all_of(meta.sizes.begin(), meta.sizes.end(), [](SymInt s) { return s.is_int(); });
  }

  Tensor as_traced(const Named& named) { return Tensor(named.meta, &nowhere_, 0); }

  Drawn tensor() {
    const Named& named = pool_[pool_.size() - 1 - choices_.below(pool_.size())];
    return {as_tensor(named.name), CallArg(as_traced(named))};
  }

  static std::string key_of(SymInt e) {
    return e.is_boolean_typed() ? "as_sym_bool" : e.is_integer_typed() ? "as_sym_int" : "as_sym_float";
  }

  Drawn integer() {
    if (!numbers_.empty() && choices_.one_in(4)) {
      const NamedNumber& n = numbers_[choices_.below(numbers_.size())];
      return {text("{\"", key_of(n.expr), R"(": {"as_name": )", json_string(n.name), "}}"), CallArg(n.expr)};
    }
    int64_t value = small();
    return {text(R"({"as_int": )", value, "}"), CallArg(value)};
  }

  Drawn floating() {
    static constexpr double values[] = {0.5, 1.0, 0.0, -1.0, 2.0, 1e-5, 0.1, 1e30, INFINITY, NAN};
    double value = choices_.of(std::span<const double>(values));
    return {text(R"({"as_float": )", number_json(value), "}"), CallArg(value)};
  }

  Drawn boolean() {
    bool value = choices_.one_in(2);
    return {text(R"({"as_bool": )", value, "}"), CallArg(value)};
  }

  Drawn list(const Type& type, size_t rank) {
    size_t count = choices_.one_in(2) ? rank : choices_.below(4);
    if (count > 6) count = 6;
    std::string items;
    switch (type.kind) {
      case TypeKind::tensor: {
        std::vector<Tensor> tensors;
        for (size_t i = 0; i < count; ++i) {
          if (type.optional_items && choices_.one_in(3)) {
            GraphText::add(items, R"({"as_none": true})");
            tensors.emplace_back();
            continue;
          }
          const Named& named = pool_[pool_.size() - 1 - choices_.below(pool_.size())];
          std::string reference = text(R"({"name": )", json_string(named.name), "}");
          GraphText::add(items, type.optional_items ? text(R"({"as_tensor": )", reference, "}") : reference);
          tensors.push_back(as_traced(named));
        }
        return {text(type.optional_items ? R"({"as_optional_tensors": [)" : R"({"as_tensors": [)", items, "]}"),
                CallArg(std::move(tensors))};
      }
      case TypeKind::floating: {
        std::vector<double> values;
        for (size_t i = 0; i < count; ++i) {
          values.push_back(0.5 + static_cast<double>(choices_.below(3)));
          GraphText::add(items, number_json(values.back()));
        }
        return {text(R"({"as_floats": [)", items, "]}"), CallArg(std::move(values))};
      }
      case TypeKind::boolean: {
        std::vector<bool> values;
        for (size_t i = 0; i < count; ++i) {
          values.push_back(choices_.one_in(2));
          GraphText::add(items, values.back() ? "true" : "false");
        }
        return {text(R"({"as_bools": [)", items, "]}"), CallArg(std::move(values))};
      }
      default: {
        Sizes values;
        for (size_t i = 0; i < count; ++i) {
          values.push_back(small());
          GraphText::add(items, text(values.back()));
        }
        return {text(R"({"as_ints": [)", items, "]}"), CallArg(values)};
      }
    }
  }

  Drawn drawn(const SchemaArg& slot, size_t rank) {
    const Type& type = slot.type;
    const Drawn none{R"({"as_none": true})", CallArg()};
    if (type.optional && choices_.one_in(3)) return none;
    if (choices_.one_in(200)) return none;  // where it may not be, too
    if (type.list) return list(type, rank);
    switch (type.kind) {
      case TypeKind::tensor: return tensor();
      case TypeKind::scalar: return choices_.one_in(3) ? floating() : choices_.one_in(8) ? boolean() : integer();
      case TypeKind::integer: return integer();
      case TypeKind::floating: return floating();
      case TypeKind::boolean: return boolean();
      case TypeKind::string: {
        static constexpr std::string_view words[] = {"mean",   "sum",   "none",   "constant", "reflect", "replicate",
                                                     "floor",  "trunc", "linear", "nearest",  "tanh",    "i,i->i",
                                                     "ij->ji", "x",     "ortho",  "forward",  "backward"};
        std::string_view word = choices_.of(std::span<const std::string_view>(words));
        return {text(R"({"as_string": ")", word, "\"}"), CallArg(std::string(word))};
      }
      case TypeKind::dtype: {
        static constexpr DType dtypes[] = {DType::f32,     DType::f64,  DType::i64, DType::i32,
                                           DType::boolean, DType::bf16, DType::c64, DType::c128};
        DType dtype = choices_.of(std::span<const DType>(dtypes));
        return {text(R"({"as_scalar_type": )", dtype_code(dtype), "}"), CallArg(dtype)};
      }
      case TypeKind::layout: return {R"({"as_layout": 7})", CallArg(Layout::strided)};
      case TypeKind::memory_format: {
        size_t code = 1 + choices_.below(4);
        return {text(R"({"as_memory_format": )", code, "}"), CallArg(static_cast<MemoryFormat>(code))};
      }
      case TypeKind::device: return {R"({"as_device": {"type": "cpu", "index": null}})", CallArg(Device{})};
      case TypeKind::generator:
      case TypeKind::storage:
      case TypeKind::stream:
      case TypeKind::other: return none;
    }
    unreachable();
  }

  void note_symbols(SymInt e) {
    for (SymInt s : sym::symbols_of(e))
      if (s.traits().integer && ranged_.insert(std::string(s.name())).second) fresh_.emplace_back(s.name());
  }

  std::string described(GraphText& g, const TensorMeta& is) {
    TensorMeta meta = is;
    meta.wrapped_number = meta.requires_grad = false;
    if (choices_.one_in(40)) meta = drawn_meta();  // a wrong claim
    for (const Sizes* sizes : {&meta.sizes, &meta.strides})
      for (SymInt e : *sizes) note_symbols(e);
    note_symbols(meta.offset);
    std::string name = text("v", next_++);
    std::string sizes, strides;
    for (SymInt e : meta.sizes) GraphText::add(sizes, expr_json(e));
    for (SymInt e : meta.strides) GraphText::add(strides, expr_json(e));
    GraphText::add(g.tensors,
                   text(json_string(name), R"(: {"dtype": )", dtype_code(meta.dtype), R"(, "sizes": [)", sizes,
                        R"(], "requires_grad": false, "device": {"type": "cpu", "index": null}, "strides": [)", strides,
                        R"(], "storage_offset": )", expr_json(meta.offset), R"(, "layout": 7})"));
    pool_.push_back({name, meta});
    return name;
  }

  static int64_t dtype_code(DType dtype) {
    std::string json = meta_json(make_meta(dtype, {}));
    return std::stoll(json.substr(json.find(':') + 1));
  }

  std::string described(GraphText& g, SymInt e) {
    if (choices_.one_in(40)) e = e + SymInt(1);  // a wrong claim
    note_symbols(e);
    std::string name = text("n", next_++);
    std::string& table = e.is_boolean_typed() ? g.bools : e.is_integer_typed() ? g.ints : g.floats;
    std::string value = e.is(sym::Kind::boolean) ? text(R"({"as_bool": )", e.boolean_value(), "}")
                        : e.is(sym::Kind::real)  ? text(R"({"as_float": )", number_json(e.real_value()), "}")
                                                 : expr_json(e);
    GraphText::add(table, text(json_string(name), ": ", value));
    numbers_.push_back({name, e});
    return text("{\"", key_of(e), R"(": {"as_name": )", json_string(name), "}}");
  }

  std::string result(GraphText& g, const BasicArg<TensorMeta>& is, const Type& type) {
    if (auto* meta = is.get<TensorMeta>()) return as_tensor(described(g, *meta));
    if (auto* metas = is.get<std::vector<TensorMeta>>()) {
      std::string items;
      for (const TensorMeta& meta : *metas)
        GraphText::add(items, text(R"({"name": )", json_string(described(g, meta)), "}"));
      return text(R"({"as_tensors": [)", items, "]}");
    }
    if (auto* number = is.get<SymInt>()) return described(g, *number);
    if (auto* flag = is.get<bool>()) return described(g, SymInt::boolean(*flag));
    if (auto* real = is.get<double>()) return described(g, SymInt::real(*real));
    // A result that is left out, as a tensor now and then.
    if (type.kind == TypeKind::tensor && choices_.one_in(2)) return as_tensor(described(g, drawn_meta()));
    return R"({"as_none": true})";
  }

  void symbolic_node(GraphText& g, const Op& op) {
    std::vector<std::pair<std::string, std::string>> args;
    std::vector<SymInt> operands;
    for (size_t i = 0; i < op.schema.args.size(); ++i) {
      Drawn drawn = choices_.one_in(10) ? floating() : choices_.one_in(30) ? tensor() : integer();
      args.emplace_back("", drawn.json);
      if (auto* e = drawn.call.get<SymInt>()) operands.push_back(*e);
      else if (auto* d = drawn.call.get<double>()) operands.push_back(SymInt::real(*d));
      else operands.emplace_back(1);
    }
    try {
      SymInt is = op.def->symbolic(operands);
      g.node(op.target, args, {described(g, is)});
    } catch (const Error&) {}
  }

  // A region around a few nodes over one tensor.
  void region(GraphText& g, int depth) {
    size_t kind = choices_.below(3);  // autocast, gradients on or off, a graph that is called
    const Named operand = pool_[pool_.size() - 1 - choices_.below(pool_.size())];
    std::vector<Named> outside = pool_;
    std::vector<NamedNumber> numbers_outside;
    numbers_outside.swap(numbers_);
    GraphText inside;
    pool_ = {operand};
    inside.tensors = text(json_string(operand.name), ": ");
    std::string sizes, strides;
    for (SymInt e : operand.meta.sizes) GraphText::add(sizes, expr_json(e));
    for (SymInt e : operand.meta.strides) GraphText::add(strides, expr_json(e));
    inside.tensors += text(R"({"dtype": )", dtype_code(operand.meta.dtype), R"(, "sizes": [)", sizes,
                           R"(], "requires_grad": false, "device": {"type": "cpu", "index": null}, "strides": [)",
                           strides, R"(], "storage_offset": )", expr_json(operand.meta.offset), R"(, "layout": 7})");
    inside.input(as_tensor(operand.name));
    for (size_t i = 1 + choices_.below(2); i > 0; --i) node(inside, depth + 1);
    const Named last = pool_.back();
    inside.output(as_tensor(last.name));
    pool_ = std::move(outside);
    numbers_.swap(numbers_outside);
    std::string result = described(g, last.meta);
    std::string graph = text(R"({"as_graph": {"name": "submod", "graph": )", inside.json(), "}}");
    std::vector<std::pair<std::string, std::string>> args;
    if (kind == 0)
      args = {{"", R"({"as_string": "cpu"})"},
              {"", R"({"as_scalar_type": 13})"},
              {"", R"({"as_bool": true})"},
              {"", R"({"as_bool": true})"}};
    else if (kind == 1) args = {{"", R"({"as_bool": false})"}};
    args.emplace_back("", graph);
    if (kind == 2) args.emplace_back("", R"({"as_string": "submod"})");
    args.emplace_back("", as_tensor(operand.name));
    constexpr std::string_view targets[] = {"wrap_with_autocast", "wrap_with_set_grad_enabled", "invoke_subgraph"};
    g.node(text("torch.ops.higher_order.", targets[kind]), args, {as_tensor(result)});
  }

  void node(GraphText& g, int depth) {
    if (depth < 2 && choices_.one_in(16)) return region(g, depth);
    const Op& op = *choices_.of(std::span<const Op* const>(operators()));
    if (op.kind == OpKind::symbolic) return symbolic_node(g, op);
    if (op.traits.control != Control::none) return;
    for (int attempt = 0; attempt < 6; ++attempt) {
      std::vector<std::pair<std::string, std::string>> args;
      CallArgs call;
      size_t rank = 2;
      for (const SchemaArg& slot : op.schema.args) {
        bool left_out = slot.has_default && choices_.one_in(2);
        Drawn arg = left_out ? Drawn{"", slot.default_value} : drawn(slot, rank);
        if (auto* t = arg.call.get<Tensor>(); t && *t) rank = t->rank();
        if (!left_out) args.emplace_back(slot.name, arg.json);
        call.push_back(std::move(arg.call));
      }
      bool careless = choices_.one_in(60);  // a call that the rule refuses
      Metas metas;
      try {
        for (size_t i = 0; i < call.size(); ++i)
          if (coerce(call[i], op.schema.args[i]) && !call[i].is_none()) throw Error("does not fit");
        require_given(op, call);
        metas = infer_any(op, call);
      } catch (const Error&) {
        if (!careless) continue;
        metas = {};
        for (const SchemaArg& r : op.schema.returns)
          if (r.type.list || r.type.kind != TypeKind::tensor) metas.values.emplace_back();
          else metas.values.emplace_back(drawn_meta());
      }
      if (!affordable(metas)) continue;
      std::vector<std::string> results;
      for (size_t i = 0; i < op.schema.returns.size(); ++i)
        results.push_back(i < metas.values.size() ? result(g, metas.values[i], op.schema.returns[i].type)
                                                  : R"({"as_none": true})");
      g.node(op.target, args, results);
      return;
    }
  }

  static bool affordable(const Metas& metas) {
    bool good = true;
    size_t count_of = 0;
    for (const auto& value : metas.values)
      for_each_tensor(value, [&](const TensorMeta& meta) {
        double elements = 1;
        for (SymInt e : meta.sizes) elements *= e.is_int() ? static_cast<double>(std::abs(e.as_int())) : 10;
        good = good && elements <= 20'000 && ++count_of <= 16;
      });
    return good;
  }

  Choices& choices_;
  bool stateful_;
  SymInt s0_ = SymInt::symbol("s0", {.positive = true});
  sym::ShapeEnv shapes_;
  GraphBody nowhere_;
  std::vector<Named> pool_;
  std::vector<NamedNumber> numbers_;
  std::set<std::string> ranged_;
  std::vector<std::string> fresh_;
  size_t next_ = 0;
};

}  // namespace

std::string generated_program(Choices& choices, bool stateful) { return Generator(choices, stateful).run(); }

}  // namespace tenon
