// Views copied: view_copy, slice_copy and so on, the functional forms of views.
#include "tenon/ops/conversion.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

// The view of the same name, copied.
Results copied_view(Build& b) {
  std::string name = b.op.name();
  name.erase(name.find("_copy"), 5);
  const Op* op = registry().find(name);
  expect(op != nullptr, b.op.name(), " has no view to copy");
  Results r = call_op(*op, CallArgs(b.args.begin(), b.args.end()));
  if (!op->schema.returns[0].type.list) return clone(r, MemoryFormat::contiguous);
  std::vector<Tensor> out;
  for (const Tensor& t : r.list()) out.push_back(clone(t, MemoryFormat::contiguous));
  return many(std::move(out));
}

}  // namespace

void register_view_copy(Registry& ops) {
  for (const char* schema : {
           "view_copy(Tensor self, SymInt[] size) -> Tensor",
           "view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor",
           "alias_copy(Tensor self) -> Tensor",
           "as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
           "detach_copy(Tensor self) -> Tensor",
           "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
           "expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor",
           "permute_copy(Tensor self, int[] dims) -> Tensor",
           "select_copy.int(Tensor self, int dim, SymInt index) -> Tensor",
           "slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
           "split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
           "split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
           "squeeze_copy(Tensor self) -> Tensor",
           "squeeze_copy.dim(Tensor self, int dim) -> Tensor",
           "squeeze_copy.dims(Tensor self, int[] dim) -> Tensor",
           "t_copy(Tensor self) -> Tensor",
           "transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor",
           "unbind_copy.int(Tensor self, int dim=0) -> Tensor[]",
           "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
           "unsqueeze_copy(Tensor self, int dim) -> Tensor",
       })
    ops.add({.schema = schema, .kind = OpKind::composite, .decompose = copied_view});
  ops.add({
      .schema = "_reshape_copy(Tensor self, SymInt[] size) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return clone(reshape(b["self"], b.arg("size")), MemoryFormat::contiguous); },
  });
}

}  // namespace tenon
