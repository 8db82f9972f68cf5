// Regions, control flow and assertions: structure that normalize turns into flags and guards, or that later stages
// refuse.
#include "tenon/ops/structural.h"

#include "tenon/rules/registry.h"

namespace tenon {

Handle grad_region;

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
  control(Control::map, "higher_order::map_impl(Any graph, Any mapped, Any captured) -> Any");
  control(Control::scan, "higher_order::scan(Any graph, Any carried, Any scanned, Any captured) -> Any");

  // Assertions. A message that is false at run time stops the run; metadata was checked when the file was read.
  for (const char* schema : {
           "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, "
           "Device? "
           "device=None, Layout? layout=None) -> ()",
           "_assert_scalar(Scalar self, str assert_msg) -> ()",
           "_assert_async.msg(Tensor self, str assert_msg) -> ()",
           "_assert_async(Tensor self) -> ()",
           "sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()",
           "sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()",
       })
    ops.add({.schema = schema, .kind = OpKind::structural, .traits = {.asserts = true}});
}

}  // namespace tenon
