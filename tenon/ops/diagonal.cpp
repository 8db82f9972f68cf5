#include "tenon/ops/diagonal.h"

#include <algorithm>

#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/view_writes.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle diagonal, diag_embed;

namespace {

Results embedded_diagonal(Build& b) {
  Tensor x = b["self"];
  b.require(x.rank() > 0, "expected at least one dimension, got ", x.meta());
  size_t rank = x.rank() + 1, first = b.dim("dim1", rank), second = b.dim("dim2", rank);
  b.require(first != second, "the two dimensions must differ, both are ", first);
  int64_t offset = b.constant("offset");
  SymInt side = x.size(-1) + (offset < 0 ? -SymInt(offset) : SymInt(offset));
  Sizes sizes(std::span<const SymInt>(x.sizes().begin(), x.rank() - 1));
  sizes.insert(std::min(first, second), side);
  sizes.insert(std::max(first, second), side);
  return diagonal_scatter(zeros(sizes, x), x, offset, static_cast<int64_t>(first), static_cast<int64_t>(second));
}

}  // namespace

void register_diagonal(Registry& ops) {
  ops.add(diagonal, {
                        .schema = "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
                        .kind = OpKind::view,
                        .view =
                            [](MetaCall& m) {
                              size_t rank = m.meta("self").rank(), a = m.dim("dim1", rank), b = m.dim("dim2", rank);
                              m.require(a != b, "the two dimensions must differ, both are ", a);
                              SymInt offset = m.integer("offset"), rows = m.meta("self").sizes[a],
                                     columns = m.meta("self").sizes[b];
                              SymInt size = statically_true(sym::lt(offset, 0)) ? smaller(rows + offset, columns)
                                                                                : smaller(rows, columns - offset);
                              return std::vector<IndexMap>{{{remap::Diagonal{a, b, offset, larger(size, 0)}}}};
                            },
                    });
  ops.add({
      .schema = "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return diagonal_scatter(zeros(b.ints("input_sizes"), b["grad_output"]), b["grad_output"], b.arg("offset"),
                                    b.arg("dim1"), b.arg("dim2"));
          },
      .complex = [](Build& b) { return by_parts(b, "grad_output"); },
  });
  ops.add(diag_embed, {
                          .schema = "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
                          .kind = OpKind::composite,
                          .decompose = embedded_diagonal,
                          .complex = [](Build& b) { return by_parts(b, "self"); },
                      });
  ops.add({
      .schema = "diag(Tensor self, int diagonal=0) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        b.require(b["self"].rank() == 1 || b["self"].rank() == 2, "expected 1 or 2 dimensions, got ", b["self"].meta());
        return b["self"].rank() == 1 ? diag_embed(b["self"], b.arg("diagonal"))
                                     : clone(diagonal(b["self"], b.arg("diagonal")), MemoryFormat::contiguous);
      },
  });
  ops.add({
      .schema = "diagflat(Tensor self, int offset=0) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return diag_embed(reshape(b["self"], Sizes{b["self"].numel()}), b.arg("offset")); },
  });
  ops.add({
      .schema = "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return diagonal(b["A"], b.arg("offset"), b.arg("dim1"), b.arg("dim2")); },
  });
}

}  // namespace tenon
