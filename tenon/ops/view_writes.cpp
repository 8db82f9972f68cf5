#include "tenon/ops/view_writes.h"

#include <algorithm>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/diagonal.h"
#include "tenon/ops/fold.h"
#include "tenon/ops/index_select.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle slice_scatter, select_scatter, diagonal_scatter, as_strided_scatter;

namespace {

// The values of `base`, with `source` where the view of it by `step` lies: a copy, then a stage that stores through the
// map.
void lower_scatter(Lower& l, const std::function<Index(const Index&)>& place) {
  Ref base = l["self"], source = l["src"], out = l.out();
  l.copy(base, out);
  l.stage(Sizes(source.sizes()), [&](const Index& i) { l.store(out, place(i), source.at(i)); });
}

// The place of a scatter's source within its first argument: where the view, called with the scatter's other arguments,
// lies.
IndexMap place_of(const Handle& view, const ArgsView& call) {
  CallArgs args(call.args.begin(), call.args.end());
  args.erase(args.begin() + static_cast<ptrdiff_t>(call.index("src")));
  MetaCall m(view.op(), args);
  return view.op().def->view(m)[0];
}

Metas scattered_meta(MetaCall& m, const Handle& view) {
  TensorMeta place = viewed(place_of(view, m), like(m.meta("self"), m.meta("self").sizes));
  m.require(!place.offset.is_int() || place.offset.as_int() >= 0, "expected a place in the tensor, got one at ",
            place.offset);
  const TensorMeta& source = m.meta("src");
  bool fits = source.rank() == place.rank();
  for (size_t i = 0; fits && i < place.rank(); ++i) fits = !statically_true(sym::ne(source.sizes[i], place.sizes[i]));
  m.require(fits, "expected a source of the sizes of the view, ", place.sizes, ", got ", source);
  TensorMeta out = like(m.meta("self"), m.meta("self").sizes);
  const TensorMeta* self = &m.meta("self");
  auto symbolic = [](SymInt size) { return !size.is_int(); };
  if (is_dense(*self)) out.strides = self->strides;
  else if (std::any_of(out.sizes.begin(), out.sizes.end(), symbolic))
    out.strides = pointwise_strides(out.sizes, std::span<const TensorMeta* const>(&self, 1));
  return out;
}

}  // namespace

void register_view_writes(Registry& ops) {
  ops.add(
      slice_scatter,
      {
          .schema = "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
                    "step=1) -> Tensor",
          .meta = [](MetaCall& m) { return scattered_meta(m, slice); },
          .lower =
              [](Lower& l) {
                auto s = std::get<remap::Slice>(place_of(slice, l).parts[0]);
                lower_scatter(
                    l, [&](const Index& i) { return i.with(s.dim, i[s.dim] * l.extent(s.step) + l.extent(s.start)); });
              },
          .vjp = {{"self",
                   [](Vjp& v) {
                     return slice_scatter(v.grad(), zeros_like(v["src"]), v.arg("dim"), v.arg("start"), v.arg("end"),
                                          v.arg("step"));
                   }},
                  {"src",
                   [](Vjp& v) { return slice(v.grad(), v.arg("dim"), v.arg("start"), v.arg("end"), v.arg("step")); }}},
          .complex = [](Build& b) { return by_parts(b, "self, src"); },
      });
  ops.add(
      select_scatter,
      {
          .schema = "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
          .meta = [](MetaCall& m) { return scattered_meta(m, select); },
          .lower =
              [](Lower& l) {
                size_t dim = l.dim("dim", l["self"].sizes().size());
                SymInt index = l.integer("index");
                if (statically_true(sym::lt(index, 0))) index = index + l["self"].size(dim);
                lower_scatter(l, [&](const Index& i) { return i.inserted(dim, l.extent(index)); });
              },
          .vjp = {{"self",
                   [](Vjp& v) { return select_scatter(v.grad(), zeros_like(v["src"]), v.arg("dim"), v.arg("index")); }},
                  {"src", [](Vjp& v) { return select(v.grad(), v.arg("dim"), v.arg("index")); }}},
          .complex = [](Build& b) { return by_parts(b, "self, src"); },
      });
  ops.add(
      diagonal_scatter,
      {
          .schema = "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
          .meta = [](MetaCall& m) { return scattered_meta(m, diagonal); },
          .lower =
              [](Lower& l) {
                auto d = std::get<remap::Diagonal>(place_of(diagonal, l).parts[0]);
                bool below = statically_true(sym::lt(d.offset, 0));
                lower_scatter(l, [&](const Index& i) {
                  Index at = i.drop_last();
                  loop::Expr row = below ? i.last() + l.extent(-d.offset) : i.last();
                  loop::Expr column = below ? i.last() : i.last() + l.extent(d.offset);
                  size_t low = std::min(d.dim1, d.dim2), high = std::max(d.dim1, d.dim2);
                  at = at.inserted(low, d.dim1 < d.dim2 ? row : column);
                  return at.inserted(high, d.dim1 < d.dim2 ? column : row);
                });
              },
          .vjp = {{"self",
                   [](Vjp& v) {
                     return diagonal_scatter(v.grad(), zeros_like(v["src"]), v.arg("offset"), v.arg("dim1"),
                                             v.arg("dim2"));
                   }},
                  {"src", [](Vjp& v) { return diagonal(v.grad(), v.arg("offset"), v.arg("dim1"), v.arg("dim2")); }}},
          .complex = [](Build& b) { return by_parts(b, "self, src"); },
      });
  ops.add(
      as_strided_scatter,
      {
          .schema = "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
                    "storage_offset=None) -> Tensor",
          .meta = [](MetaCall& m) { return scattered_meta(m, as_strided); },
          .lower =
              [](Lower& l) {
                // The result is dense in the base's order, so a place in the storage is a place in the result's flat
                // index.
                SymInt offset = l.given("storage_offset") ? l.integer("storage_offset") : SymInt(0);
                Sizes strides = l.ints("stride");
                const Sizes sizes = l["self"].sizes(), base_strides = l.program.buffers[l.out().id].strides;
                lower_scatter(l, [&](const Index& i) {
                  loop::Expr flat = l.extent(offset);
                  for (size_t d = 0; d < strides.size(); ++d) flat = flat + i[d] * l.extent(strides[d]);
                  Index at;
                  for (size_t d = 0; d < sizes.size(); ++d)
                    at.push_back(call(loop::Fn::remainder, call(loop::Fn::floor_div, flat, l.extent(base_strides[d])),
                                      l.extent(sizes[d])));
                  return at;
                });
              },
          .vjp = {{"self",
                   [](Vjp& v) {
                     return as_strided_scatter(v.grad(), zeros_like(v["src"]), v.arg("size"), v.arg("stride"),
                                               v.arg("storage_offset"));
                   }},
                  {"src",
                   [](Vjp& v) {
                     return as_strided(v.grad(), v.arg("size"), v.arg("stride"), v.arg("storage_offset"));
                   }}},
          .complex = [](Build& b) { return by_parts(b, "self, src"); },
      });
  ops.add({
      .schema = "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt "
                "step) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return slice_scatter(zeros(b.ints("input_sizes"), b["grad_output"]), b["grad_output"], b.arg("dim"),
                                 b.arg("start"), b.arg("end"), b.arg("step"));
          },
      .complex = [](Build& b) { return by_parts(b, "grad_output"); },
  });
  ops.add({
      .schema = "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return select_scatter(zeros(b.ints("input_sizes"), b["grad_output"]), b["grad_output"], b.arg("dim"),
                                  b.arg("index"));
          },
      .complex = [](Build& b) { return by_parts(b, "grad_output"); },
  });
}

namespace {

Sizes inverse(const remap::Permute& p) {
  Sizes out(p.dims.size(), SymInt(0));
  for (size_t i = 0; i < p.dims.size(); ++i) out[p.dims[i]] = SymInt(static_cast<int64_t>(i));
  return out;
}

SymInt slice_end(const remap::Slice& s) { return s.start + (s.size - 1) * s.step + 1; }
SymInt end_of(const remap::Slice& s) { return s.size == SymInt(0) ? s.start : slice_end(s); }

// The sum over windows: what a base element gets from every place it was seen.
Tensor gather_windows(const remap::Unfold& u, const TensorMeta& base, const Tensor& grad) {
  return unfold_backward(grad, base.sizes, static_cast<int64_t>(u.dim), u.size, u.step);
}

// The same for a view by strides: the elements of its gradient, added up at the places they were read from.
Tensor gather_strided(const remap::Strided& s, const TensorMeta& base, const Tensor& grad) {
  Tensor places = full(Sizes{}, s.offset, kw("dtype", DType::i64));
  for (size_t d = 0; d < s.sizes.size(); ++d) {
    Sizes shape(s.sizes.size(), SymInt(1));
    shape[d] = s.sizes[d];
    places = add(places, mul(view(arange(0, s.sizes[d]), shape), s.strides[d]));
  }
  Tensor flat = zeros({count(base.sizes)}, grad);
  return reshape(index_add(flat, 0, reshape(places, Sizes{count(s.sizes)}), reshape(grad, Sizes{count(s.sizes)})),
                 base.sizes);
}

Tensor gradient_step(const remap::Part& step, const TensorMeta& base, const Tensor& g) {
  if (auto* p = std::get_if<remap::Permute>(&step)) return permute(g, inverse(*p));
  if (std::get_if<remap::Reshape>(&step)) return reshape(g, base.sizes);
  if (std::get_if<remap::Expand>(&step)) return sum_to(g, base.sizes);
  if (auto* s = std::get_if<remap::Slice>(&step)) {
    if (s->start == SymInt(0) && s->size == base.sizes[s->dim] && s->step == SymInt(1)) return g;
    return slice_scatter(zeros(base.sizes, g), g, s->dim, s->start, end_of(*s), s->step);
  }
  if (auto* d = std::get_if<remap::Diagonal>(&step))
    return diagonal_scatter(zeros(base.sizes, g), g, d->offset, static_cast<int64_t>(d->dim1),
                            static_cast<int64_t>(d->dim2));
  if (auto* u = std::get_if<remap::Unfold>(&step)) return gather_windows(*u, base, g);
  if (auto* s = std::get_if<remap::Strided>(&step)) {
    if (overlaps(step, base)) return gather_strided(*s, base, g);
    return as_strided_scatter(zeros(base.sizes, g), g, s->sizes, s->strides, s->offset);
  }
  if (std::get_if<remap::Reinterpret>(&step)) fail("view: a dtype view has no gradient");
  if (std::get_if<remap::AsReal>(&step)) return read_step(remap::AsComplex(), g);
  if (std::get_if<remap::AsComplex>(&step)) return view_as_real(g);
  if (std::get_if<remap::Conjugate>(&step)) return conjugate(g);
  return none;
}

}  // namespace

Tensor read_step(const remap::Part& step, const Tensor& base) {
  if (auto* p = std::get_if<remap::Permute>(&step)) {
    Sizes dims;
    for (size_t d : p->dims) dims.push_back(SymInt(static_cast<int64_t>(d)));
    return permute(base, dims);
  }
  if (auto* r = std::get_if<remap::Reshape>(&step))
    return view_strides(base.sizes(), base.strides(), r->sizes) ? view(base, r->sizes) : reshape(base, r->sizes);
  if (auto* e = std::get_if<remap::Expand>(&step)) return expand(base, e->sizes);
  if (auto* s = std::get_if<remap::Slice>(&step)) return slice(base, s->dim, s->start, end_of(*s), s->step);
  if (auto* d = std::get_if<remap::Diagonal>(&step))
    return diagonal(base, d->offset, static_cast<int64_t>(d->dim1), static_cast<int64_t>(d->dim2));
  if (auto* u = std::get_if<remap::Unfold>(&step)) return unfold(base, static_cast<int64_t>(u->dim), u->size, u->step);
  if (auto* s = std::get_if<remap::Strided>(&step)) return as_strided(base, s->sizes, s->strides, s->offset);
  if (auto* r = std::get_if<remap::Reinterpret>(&step)) return view_dtype(base, r->dtype);
  if (std::get_if<remap::AsReal>(&step)) return view_as_real(base);
  if (std::get_if<remap::AsComplex>(&step))
    return view_as_complex(is_view(step, base.meta()) ? base : Tensor(clone(base, MemoryFormat::contiguous)));
  if (std::get_if<remap::Conjugate>(&step)) return conjugate(base);
  return detach(base);
}

Tensor read_through(const IndexMap& map, const Tensor& base) {
  Tensor t = base;
  for (const remap::Part& step : map.parts) t = read_step(step, t);
  return t;
}

Tensor write_through(const remap::Part& step, const Tensor& base, const Tensor& source) {
  require(!overlaps(step, base.meta()), "a write through ", step, " of ", base.meta(),
          " would hit one element more than once; clone the tensor before writing to it");
  if (auto* p = std::get_if<remap::Permute>(&step)) return permute(source, inverse(*p));
  if (std::get_if<remap::Reshape>(&step)) return reshape(source, base.sizes());
  if (std::get_if<remap::Expand>(&step)) return reshape(source, base.sizes());  // it repeats nothing
  if (auto* s = std::get_if<remap::Slice>(&step)) {
    if (s->start == SymInt(0) && s->size == base.sizes()[s->dim] && s->step == SymInt(1)) return source;
    return slice_scatter(base, source, s->dim, s->start, end_of(*s), s->step);
  }
  if (auto* d = std::get_if<remap::Diagonal>(&step))
    return diagonal_scatter(base, source, d->offset, static_cast<int64_t>(d->dim1), static_cast<int64_t>(d->dim2));
  if (auto* s = std::get_if<remap::Strided>(&step))
    return as_strided_scatter(base, source, s->sizes, s->strides, s->offset);
  if (auto* u = std::get_if<remap::Unfold>(&step)) {  // windows that do not overlap: their gradient is their inverse
    Tensor ones = full_like(source, 1);
    Tensor hit = gather_windows(*u, base.meta(), ones);
    return where(ne(hit, 0.0), gather_windows(*u, base.meta(), source), base);
  }
  if (std::get_if<remap::Reinterpret>(&step)) return view_dtype(source, base.dtype());
  if (std::get_if<remap::AsReal>(&step)) return read_step(remap::AsComplex(), source);
  if (std::get_if<remap::AsComplex>(&step)) return view_as_real(source);
  if (std::get_if<remap::Conjugate>(&step)) return conjugate(source);
  return source;
}

Tensor gradient_through(const IndexMap& map, const TensorMeta& base, const Tensor& grad) {
  std::vector<TensorMeta> before = {base};
  for (size_t i = 0; i + 1 < map.parts.size(); ++i) before.push_back(viewed(map.parts[i], before.back()));
  Tensor g = grad;
  for (size_t i = map.parts.size(); i-- > 0 && g;) g = gradient_step(map.parts[i], before[i], g);
  return g;
}

Tensor sum_to(const Tensor& grad, const Sizes& sizes) {
  if (grad.sizes() == sizes) return grad;
  size_t extra = grad.rank() - sizes.size();
  Sizes dims;
  bool leading = extra > 0;
  for (size_t i = 0; i < grad.rank(); ++i) {
    bool repeated = i >= extra && sizes[i - extra] == SymInt(1) && !(grad.sizes()[i] == SymInt(1));
    if (i < extra || repeated) dims.push_back(SymInt(static_cast<int64_t>(i)));
  }
  if (dims.empty()) return grad;
  Tensor g = sum(grad, dims, true);
  if (leading) return view(g, sizes);
  return g;
}

}  // namespace tenon
