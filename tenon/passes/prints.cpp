#include "tenon/passes/prints.h"

#include <charconv>

#include "tenon/base/python_format.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/printing.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/trace/trace.h"

namespace tenon {
namespace {

class Printing {
 public:
  Printing(GraphBody& graph, const Node& node)
      : node_(node), tracer_(graph), mode_(node.grad_enabled), scope_(&tracer_), shapes_(&graph.shapes) {
    tracer_.metadata = node.origin.metadata;
  }

  void run() {
    auto* format = node_.args.empty() ? nullptr : node_.args[0].get<std::string>();
    require(format != nullptr, node_.op->target, ": expected a format as argument 0");
    for (const FormatPiece& piece : parse_format(*format)) {
      out_ += escaped_braces(piece.text);
      if (piece.has_field) add(argument(piece.name), piece);
    }
    print_values(out_, tensors_);
  }

 private:
  const Arg& argument(const std::string& name) const {
    size_t named = node_.origin.keywords.size(), positional = node_.args.size() - named - 1, number = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) {
      require(number < positional, node_.op->target, ": its format has a field ", number, ", and there are ",
              positional, " arguments");
      return node_.args[1 + number];
    }
    for (size_t i = 0; i < named; ++i)
      if (node_.origin.keywords[i] == name) return node_.args[1 + positional + i];
    fail(node_.op->target, ": its format has a field ", quoted(name), ", and no argument has that name");
  }

  void literal(const std::string& text) { out_ += escaped_braces(text); }

  void tensor(Tensor t, const FormatPiece& piece, bool as_repr) {
    require(t.rank() == 0 || piece.spec.empty(), node_.op->target, ": a tensor of ", t.rank(),
            " dimensions cannot be written as the format ", quoted(piece.spec), " asks");
    out_ += as_repr ? "{!r}" : piece.spec.empty() ? "{}" : "{:" + piece.spec + "}";
    tensors_.push_back(std::move(t));
  }

  void number(SymInt e, const FormatPiece& piece) {
    if (e.is_int()) return literal(python_format(e.as_int(), piece.spec));
    if (e.is(sym::Kind::real)) return literal(python_format(e.real_value(), piece.spec));
    if (e.is(sym::Kind::boolean)) return literal(python_format(e.boolean_value(), piece.spec));
    DType dtype = e.is_boolean_typed() ? DType::boolean : e.is_integer_typed() ? DType::i64 : DType::f64;
    tensor(scalar_tensor(e, kw("dtype", dtype)), piece, false);
  }

  template <class Items, class F>
  void list(const Items& items, const F& each) {
    out_ += "[";
    bool first = true;
    for (const auto& item : items) {
      if (!first) out_ += ", ";
      first = false;
      each(item);
    }
    out_ += "]";
  }

  void add(const Arg& arg, const FormatPiece& piece) {
    FormatPiece plain{{}, true, {}, true, {}};
    auto alone = [&] {
      require(piece.spec.empty(), node_.op->target, ": ", "a list or None cannot be written as the format ",
              quoted(piece.spec), " asks");
    };
    if (arg.is_none()) alone(), literal("None");
    else if (auto* v = arg.get<Value>()) tensor(tracer_.tensor(*v), piece, piece.as_repr);
    else if (auto* b = arg.get<bool>()) literal(python_format(*b, piece.spec));
    else if (auto* d = arg.get<double>()) literal(python_format(*d, piece.spec));
    else if (auto* e = arg.get<SymInt>()) number(*e, piece);
    else if (auto* s = arg.get<std::string>())
      literal(python_format(std::string_view(piece.as_repr ? "'" + *s + "'" : *s), piece.spec));
    else if (auto* values = arg.get<std::vector<Value>>())
      alone(), list(*values, [&](Value each) { tensor(tracer_.tensor(each), plain, true); });
    else if (auto* sizes = arg.get<Sizes>()) alone(), list(*sizes, [&](SymInt each) { number(each, plain); });
    else if (auto* reals = arg.get<std::vector<double>>())
      alone(), list(*reals, [&](double each) { literal(python_repr(each)); });
    else if (auto* truths = arg.get<std::vector<bool>>())
      alone(), list(*truths, [&](bool each) { literal(each ? "True" : "False"); });
    else if (auto* items = arg.get<Arg::Items>()) alone(), list(*items, [&](const Arg& each) { add(each, plain); });
    else
      fail_unsupported(text(node_.op->target, ": an argument that is neither a tensor, a number, a string nor a list ",
                            "of these cannot be printed yet"));
  }

  const Node& node_;
  Tracer tracer_;
  GradMode mode_;
  DispatchScope scope_;
  ShapesScope shapes_;
  std::string out_;
  std::vector<Tensor> tensors_;
};

}  // namespace

void trace_print(GraphBody& graph, const Node& node) { Printing(graph, node).run(); }

Node print_for_files(const Node& node) {
  Node out = node;
  out.op = &printed_call.op();
  out.args = {node.args.at(0)};
  for_each_tensor(node.args.at(1), [&](const Value& v) { out.args.emplace_back(v); });
  out.given = ~uint64_t{0};
  out.origin.keywords.clear();
  out.origin.hop_single_return = 0;
  out.results = {Arg()};
  return out;
}

}  // namespace tenon
