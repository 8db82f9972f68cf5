// Regions, control flow and assertions: structure that normalize turns into flags and guards, or that later stages
// refuse.
#include "tenon/ops/structural.h"

#include "tenon/rules/registry.h"

namespace tenon {

Handle grad_region, assert_async, called_region, packed_region, hinted_region, strict_region, associative_scan,
    map_rows, scan_rows, repeat_stacked, effectful_call, functionalized, functionalized_v2, typed_call, batch_entry,
    batch_exit, batch_begin, batch_end, batch_setup, dual_entry, dual_entry_aten, dual_exit, dual_exit_aten,
    unwrapped_for_grad, level_begin, level_end, dual_begin, dual_end;

namespace {

// A number or a tensor of one element, with the message of the program's author where there is one.
std::vector<Assertion> holds(const ArgsView& call) {
  Assertion a;
  if (call.op.schema.find("assert_msg") >= 0) a.message = call.string("assert_msg");
  if (call.is_tensor("self")) {
    a.tensor = call["self"];
    call.require(a.tensor.numel() == SymInt(1) || !a.tensor.numel().is_int(), "expected a tensor of one element, got ",
                 a.tensor.meta());
  } else if (auto* b = call.arg("self").get<bool>()) {
    a.condition = sym::Expr::boolean(*b);
  } else {
    SymInt e = call.integer("self");
    a.condition = e.is_boolean_typed() ? e : sym::ne(e, SymInt(0));
  }
  return {a};
}

std::vector<Assertion> within_range(const ArgsView& call) {
  std::vector<Assertion> out;
  SymInt size = call.integer("size");
  if (call.given("min"))
    out.push_back({sym::ge(size, call.integer("min")), {}, text("expected a size of at least ", call.integer("min"))});
  if (call.given("max"))
    out.push_back({sym::le(size, call.integer("max")), {}, text("expected a size of at most ", call.integer("max"))});
  return out;
}

std::vector<Assertion> expected_metadata(const ArgsView& call) {
  std::vector<Assertion> out;
  const TensorMeta& a = call.meta("a");
  auto list = [&](const char* what, const Sizes& got, const Sizes& wanted) {
    std::string message = text("expected a tensor of ", what, " ", wanted);
    if (got.size() != wanted.size()) out.push_back({sym::Expr::boolean(false), {}, message});
    else
      for (size_t i = 0; i < got.size(); ++i) out.push_back({sym::eq(got[i], wanted[i]), {}, message});
  };
  if (call.given("size")) list("sizes", a.sizes, call.ints("size"));
  if (call.given("stride")) list("strides", a.strides, call.ints("stride"));
  if (auto dtype = call.dtype("dtype"))
    out.push_back(
        {sym::Expr::boolean(*dtype == a.dtype), {}, text("expected a tensor of ", *dtype, ", got ", a.dtype)});
  std::erase_if(out, [](const Assertion& each) { return each.condition == sym::Expr::boolean(true); });
  return out;
}

}  // namespace

void register_structural(Registry& ops) {
  auto control = [&](Control what, const char* schema) {
    ops.add({.schema = schema, .kind = OpKind::structural, .traits = {.control = what}});
  };
  ops.add(grad_region,
          {
              .schema = "higher_order::wrap_with_set_grad_enabled(bool enabled, Any graph, Any args) -> Any",
              .kind = OpKind::structural,
              .traits = {.control = Control::grad_region},
          });
  control(Control::autocast_region,
          "higher_order::wrap_with_autocast(str device, ScalarType? dtype, bool enabled, bool cache, Any graph, Any "
          "args) -> Any");
  control(Control::choose, "higher_order::cond(Any pred, Any true_graph, Any false_graph, Any operands) -> Any");
  control(Control::repeat, "higher_order::while_loop(Any cond, Any body, Any carried, Any captured) -> Any");
  auto handled = [&](Handle& handle, Control what, const char* schema) {
    ops.add(handle, {.schema = schema, .kind = OpKind::structural, .traits = {.control = what}});
  };
  handled(map_rows, Control::map, "higher_order::map_impl(Any graph, Any mapped, Any captured) -> Any");
  handled(scan_rows, Control::scan, "higher_order::scan(Any graph, Any carried, Any scanned, Any captured) -> Any");
  // Normalized to the ones above, or to nothing.
  handled(called_region, Control::none, "higher_order::invoke_subgraph(Any graph, str? name, Any args) -> Any");
  handled(packed_region, Control::none,
          "higher_order::invoke_quant_packed(Any graph, Any args, *, Any scheme=None, Any quant_options=None) -> Any");
  handled(hinted_region, Control::none,
          "higher_order::hints_wrapper(Any graph, Any args, Any kwargs, Any hints) -> Any");
  handled(strict_region, Control::none, "higher_order::strict_mode(Any graph, Any args) -> Any");
  handled(associative_scan, Control::none,
          "higher_order::associative_scan(Any graph, Any scanned, Any captured) -> Any");
  handled(repeat_stacked, Control::none,
          "higher_order::while_loop_stack_output(Any cond, Any body, Any carried, Any captured) -> Any");
  control(Control::none, "promote_types(ScalarType type1, ScalarType type2) -> ScalarType");
  control(Control::none, "result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType");
  control(Control::none, "result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType");
  control(Control::none, "result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType");
  control(Control::none, "result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType");
  handled(effectful_call, Control::none, "higher_order::with_effects(Any token, Any op, Any args) -> Any");
  handled(functionalized, Control::none, "higher_order::auto_functionalized(Any op, Any args) -> Any");
  handled(functionalized_v2, Control::none, "higher_order::auto_functionalized_v2(Any op, Any args) -> Any");
  handled(typed_call, Control::none, "higher_order::out_dtype(Any op, ScalarType dtype, Any args) -> Any");
  // What vmap leaves in a graph: nodes between entry and exit are of one sample.
  handled(batch_entry, Control::none, "functorch::_add_batch_dim(Any tensor, int dim, int level) -> Any");
  handled(batch_exit, Control::none,
          "functorch::_remove_batch_dim(Any tensor, int level, SymInt size, int dim) -> Any");
  handled(batch_begin, Control::none, "functorch::_vmap_increment_nesting(SymInt size, str randomness) -> Any");
  handled(batch_end, Control::none, "functorch::_vmap_decrement_nesting() -> Any");
  handled(batch_setup, Control::none, "functorch::lazy_load_decompositions() -> Any");

  // What jvp leaves: nodes between entry and exit move with their arguments.
  handled(dual_entry, Control::none, "functorch::_make_dual(Any tensor, Any tangent, *, int level) -> Any");
  handled(dual_entry_aten, Control::none, "_make_dual(Tensor(a) primal, Tensor tangent, int level) -> Tensor(a)");
  handled(dual_exit, Control::none, "functorch::_unpack_dual(Any tensor, *, int level) -> Any");
  handled(dual_exit_aten, Control::none,
          "_unpack_dual(Tensor(a) dual, int level) -> (Tensor(a) primal, Tensor tangent)");
  handled(unwrapped_for_grad, Control::none, "functorch::_unwrap_for_grad(Any tensor, int level) -> Any");
  handled(level_begin, Control::none, "functorch::_jvp_increment_nesting() -> Any");
  handled(level_end, Control::none, "functorch::_jvp_decrement_nesting() -> Any");
  handled(dual_begin, Control::none, "functorch::_enter_dual_level() -> Any");
  handled(dual_end, Control::none, "functorch::_exit_dual_level(*, int level) -> Any");

  // Assertions are checked when the program runs.
  auto assertion = [&](AssertRule demands, const char* schema) {
    ops.add({.schema = schema, .kind = OpKind::structural, .traits = {.asserts = true}, .asserts = demands});
  };
  assertion(expected_metadata,
            "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, "
            "Device? device=None, Layout? layout=None) -> ()");
  assertion(holds, "_assert_scalar(Scalar self, str assert_msg) -> ()");
  ops.add(assert_async, {.schema = "_assert_async.msg(Tensor self, str assert_msg) -> ()",
                         .kind = OpKind::structural,
                         .traits = {.asserts = true},
                         .asserts = holds});
  assertion(holds, "_assert_async(Tensor self) -> ()");
  assertion(within_range, "sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()");
  assertion(within_range, "sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()");
  // Where tokens are made and end within the graph: what holds nothing asserts nothing.
  assertion([](const ArgsView&) { return std::vector<Assertion>(); }, "prims::_sink_tokens(Tensor[] tokens) -> ()");
}

}  // namespace tenon
