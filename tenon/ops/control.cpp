// Regions, control flow and assertions: structure that normalize turns into flags and guards, or that later stages refuse.
#include "tenon/ops/control.h"

#include "tenon/rules/registry.h"

namespace tenon {

Handle grad_region;

void register_control(Registry& ops) {
  ops.add(grad_region, {.schema = "higher_order::wrap_with_set_grad_enabled(bool enabled, Any graph, Any args) -> Any",
           .kind = OpKind::structural,
           .traits = {.control = Control::grad_region}});
  ops.add({.schema = "higher_order::wrap_with_autocast(str device, ScalarType? dtype, bool enabled, bool cache, Any graph, Any args) -> Any",
           .kind = OpKind::structural,
           .traits = {.control = Control::autocast_region}});
  ops.add({.schema = "higher_order::cond(Any pred, Any true_graph, Any false_graph, Any operands) -> Any", .kind = OpKind::structural, .traits = {.control = Control::choose}});
  ops.add({.schema = "higher_order::while_loop(Any cond, Any body, Any carried, Any captured) -> Any", .kind = OpKind::structural, .traits = {.control = Control::repeat}});
  ops.add({.schema = "higher_order::map_impl(Any graph, Any mapped, Any captured) -> Any", .kind = OpKind::structural, .traits = {.control = Control::map}});
  ops.add({.schema = "higher_order::scan(Any graph, Any carried, Any scanned, Any captured) -> Any", .kind = OpKind::structural, .traits = {.control = Control::scan}});

  // Assertions. A message that is false at run time stops the run; metadata was checked when the file was read.
  ops.add({.schema = "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? device=None, "
                     "Layout? layout=None) -> ()",
           .kind = OpKind::structural,
           .traits = {.asserts = true}});
  ops.add({.schema = "_assert_scalar(Scalar self, str assert_msg) -> ()", .kind = OpKind::structural, .traits = {.asserts = true}});
  ops.add({.schema = "_assert_async.msg(Tensor self, str assert_msg) -> ()", .kind = OpKind::structural, .traits = {.asserts = true}});
  ops.add({.schema = "_assert_async(Tensor self) -> ()", .kind = OpKind::structural, .traits = {.asserts = true}});
  ops.add({.schema = "sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()", .kind = OpKind::structural, .traits = {.asserts = true}});
  ops.add({.schema = "sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", .kind = OpKind::structural, .traits = {.asserts = true}});
}

}  // namespace tenon
