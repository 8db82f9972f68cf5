#include "tenon/optimize/turn_products.h"

#include <algorithm>

#include "tenon/optimize/anchors.h"
#include "tenon/optimize/compact.h"
#include "tenon/optimize/rewrite.h"

namespace tenon::optimize {
namespace {

using loop::BufferId;
using loop::ExprId;
using loop::ExprNode;
using loop::Fn;

class Turning {
 public:
  Turning(loop::Program& program, StepList& list) : program_(program), list_(list) {}

  void run() {
    for (size_t i = 0; i < list_.size(); ++i)
      if (auto* gemm = std::get_if<loop::Gemm>(&list_[i]); list_.alive(i) && gemm) consider(i, *gemm);
  }

 private:
  void consider(size_t i, loop::Gemm gemm) {
    BufferId y = gemm.out.buffer;
    const loop::Buffer& b = program_.buffers[y];
    if (b.view_of != loop::no_buffer || !list_.is_private(y) || list_.writers(y).size() != 1 ||
        gemm.epilogue.has_bias || gemm.epilogue.has_residual || gemm.beta != 0 || list_.readers(y).empty())
      return;
    std::optional<size_t> rows, columns;  // dimensions of the buffer that have more than one element
    for (size_t d = 0; d < b.sizes.size(); ++d) {
      if (b.sizes[d] == SymInt(1)) continue;
      if (columns) return;
      (rows ? columns : rows) = d;
    }
    auto dims = dimensions_of(program_, gemm.out);
    if (!columns || !dims || b.strides[*columns] != SymInt(1) || b.strides[*rows] != b.sizes[*columns]) return;
    const SymInt old_rows = b.strides[*rows], new_columns = b.sizes[*rows];
    if (old_rows == SymInt(1)) return;
    for (const loop::Buffer& view : program_.buffers)
      if (view.view_of == y && !turned(view, old_rows, new_columns)) return;
    int votes = 0;
    for (size_t r : list_.readers(y)) {
      const loop::Stage* stage = list_.stage(r);
      if (!stage || !vote(*stage, y, votes)) return;
    }
    if (votes <= 0) return;
    for (loop::Buffer& view : program_.buffers)
      if (view.view_of == y) view.strides = *turned(view, old_rows, new_columns);
    program_.buffers[y].strides[*rows] = 1;
    program_.buffers[y].strides[*columns] = new_columns;
    for (size_t j = 0; j < dims->size(); ++j)
      if ((*dims)[j]) gemm.out.strides[j] = program_.buffers[y].strides[*(*dims)[j]];
    list_.replace(i, std::move(gemm));
  }

  /// The strides of a view that walks through whole rows and columns alone.
  static std::optional<Sizes> turned(const loop::Buffer& view, SymInt old_rows, SymInt new_columns) {
    if (view.offset != SymInt(0)) return std::nullopt;
    Sizes out = view.strides;
    for (size_t d = 0; d < view.sizes.size(); ++d) {
      if (view.sizes[d] == SymInt(1)) continue;
      if (view.strides[d] == old_rows && view.sizes[d] == new_columns) out[d] = 1;
      else if (view.strides[d] == SymInt(1) && view.sizes[d] == old_rows) out[d] = new_columns;
      else return std::nullopt;
    }
    return out;
  }

  /// Whether a stage's neighbours are neighbours in the product; its vote counts as often as it reads the product.
  /// False where a load is none of a row or column walked by one loop each.
  bool vote(const loop::Stage& stage, BufferId y, int& votes) const {
    std::optional<size_t> lane;
    for (const loop::Store& s : stage.stores) {
      const loop::Buffer& to = program_.buffers[s.to];
      for (size_t d = 0; d < s.at.size() && !lane; ++d)
        if (to.strides[d] == SymInt(1) && to.sizes[d] != SymInt(1)) lane = as_loop(program_.arena, s.at[d]);
    }
    bool fits = true;
    for_each_node(program_.arena, expressions_of(stage), [&](ExprId id) {
      const ExprNode& n = program_.arena[id];
      if (n.fn != Fn::load || root_of(program_, n.buffer) != y) return;
      const loop::Buffer& from = program_.buffers[n.buffer];
      for (size_t d = 0; d < n.args.size(); ++d) {
        if (from.sizes[d] == SymInt(1)) continue;
        auto k = as_loop(program_.arena, n.args[d]);
        fits = fits && k.has_value();
        if (k && k == lane) votes += from.strides[d] == SymInt(1) ? -1 : 1;
      }
    });
    return fits;
  }

  loop::Program& program_;
  StepList& list_;
};

}  // namespace

loop::Program turn_products(loop::Program program) {
  for_each_list(program, [&](StepList& list) { Turning(program, list).run(); });
  return compact(std::move(program));
}

}  // namespace tenon::optimize
