#include "tenon/loop/index_map.h"

#include <algorithm>

#include "tenon/base/error.h"
#include "tenon/sym/exact.h"

namespace tenon {

IndexMap::IndexMap() = default;
IndexMap::IndexMap(std::vector<remap::Part> parts) : parts(std::move(parts)) {}
IndexMap::IndexMap(const IndexMap&) = default;
IndexMap::IndexMap(IndexMap&&) noexcept = default;
IndexMap& IndexMap::operator=(const IndexMap&) = default;
IndexMap& IndexMap::operator=(IndexMap&&) noexcept = default;
IndexMap::~IndexMap() = default;
bool IndexMap::operator==(const IndexMap&) const = default;

std::optional<Sizes> view_strides(const Sizes& base_sizes, const Sizes& base_strides, const Sizes& sizes) {
  for (SymInt size : base_sizes)
    if (size == SymInt(0)) return contiguous_strides(sizes);
  // Dense memory may be cut up anew in any way; that symbolic sizes multiply to the same number is for the run to
  // check.
  if (!(count(base_sizes).is_int() && count(sizes).is_int())) {
    Sizes dense = contiguous_strides(base_sizes);
    bool is_dense = true;
    for (size_t i = 0; i < dense.size() && is_dense; ++i)
      is_dense = base_sizes[i] == SymInt(1) || sym::equal_if_exact(base_strides[i], dense[i]);
    if (is_dense) return contiguous_strides(sizes);
  }
  // Where one dimension alone has another name, equal counts make it as large as it was.
  if (sizes.size() == base_sizes.size()) {
    size_t others = 0;
    bool by_name = true;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sym::equal_if_exact(sizes[i], base_sizes[i])) continue;
      ++others;
      by_name = by_name && !(sizes[i].is_int() && base_sizes[i].is_int());
    }
    if (others == 1 && by_name) return base_strides;
  }
  Sizes strides(sizes.size(), SymInt(1));
  // Walk both shapes from the right; a run of base dims that lie densely behind each other may be cut up anew.
  size_t next = sizes.size();
  SymInt chunk_stride = base_strides.empty() ? SymInt(1) : base_strides.back();
  SymInt base_count = 1;
  for (size_t b = base_sizes.size(); b-- > 0;) {
    base_count = base_count * base_sizes[b];
    bool ends = b == 0 || (!(base_sizes[b - 1] == SymInt(1)) &&
                           !sym::equal_if_exact(base_strides[b - 1], base_count * chunk_stride));
    if (!ends) continue;
    SymInt view_count = 1;
    while (next > 0 && (!sym::equal_if_exact(view_count, base_count) || sizes[next - 1] == SymInt(1))) {
      // Stop when the chunk is full; a remaining dim of 1 may be taken by it.
      SymInt taken = view_count * sizes[next - 1];
      if (view_count.is_int() && base_count.is_int() && taken.is_int() && taken.as_int() > base_count.as_int()) break;
      strides[next - 1] = view_count * chunk_stride;
      view_count = taken;
      --next;
    }
    if (!sym::equal_if_exact(view_count, base_count)) return std::nullopt;
    if (b > 0) {
      chunk_stride = base_strides[b - 1];
      base_count = 1;
    }
  }
  if (base_sizes.empty())
    while (next > 0 && sizes[next - 1] == SymInt(1)) strides[--next] = 1;
  if (next != 0) return std::nullopt;
  return strides;
}

namespace {

TensorMeta applied(const remap::Permute& p, TensorMeta m) {
  Sizes sizes, strides;
  for (size_t d : p.dims) {
    sizes.push_back(m.sizes[d]);
    strides.push_back(m.strides[d]);
  }
  m.sizes = sizes;
  m.strides = strides;
  return m;
}

TensorMeta applied(const remap::Slice& s, TensorMeta m) {
  m.offset = m.offset + s.start * m.strides[s.dim];
  m.sizes[s.dim] = s.size;
  m.strides[s.dim] = m.strides[s.dim] * s.step;
  return m;
}

TensorMeta applied(const remap::Expand& e, TensorMeta m) {
  expect(e.sizes.size() >= m.rank(), "expand to a lower rank");
  size_t fresh = e.sizes.size() - m.rank();
  Sizes strides(e.sizes.size(), SymInt(0));
  for (size_t i = 0; i < m.rank(); ++i) {
    bool spread = m.sizes[i] == SymInt(1) && !(e.sizes[fresh + i] == SymInt(1));  // else equal, if by a guard
    strides[fresh + i] = spread ? SymInt(0) : m.strides[i];
  }
  for (size_t i = fresh; i-- > 0;)  // a new dim of size 1 gets the stride of a dense one
    if (e.sizes[i] == SymInt(1)) strides[i] = i + 1 < e.sizes.size() ? e.sizes[i + 1] * strides[i + 1] : SymInt(1);
  m.sizes = e.sizes;
  m.strides = strides;
  return m;
}

TensorMeta applied(const remap::Reshape& r, TensorMeta m) {
  std::optional<Sizes> strides = view_strides(m.sizes, m.strides, r.sizes);
  require(strides.has_value(), "view: sizes ", r.sizes, " are no view of a tensor with sizes ", m.sizes,
          " and strides ", m.strides, "; use reshape, which copies where it must");
  m.sizes = r.sizes;
  m.strides = *strides;
  return m;
}

TensorMeta applied(const remap::Diagonal& d, TensorMeta m) {
  // A positive offset starts to the right, a negative one further down.
  SymInt start = 0;
  if (d.offset.is_int() && d.offset.as_int() < 0) start = -d.offset * m.strides[d.dim1];
  else start = d.offset * m.strides[d.dim2];
  SymInt stride = m.strides[d.dim1] + m.strides[d.dim2];
  if (!(d.size == SymInt(0))) m.offset = m.offset + start;
  size_t high = std::max(d.dim1, d.dim2), low = std::min(d.dim1, d.dim2);
  m.sizes.erase(high);
  m.sizes.erase(low);
  m.strides.erase(high);
  m.strides.erase(low);
  m.sizes.push_back(d.size);
  m.strides.push_back(stride);
  return m;
}

TensorMeta applied(const remap::Unfold& u, TensorMeta m) {
  if (m.rank() == 0) {
    m.sizes.push_back(u.size);
    m.strides.push_back(1);
    return m;
  }
  SymInt stride = m.strides[u.dim];
  m.sizes[u.dim] = sym::floor_div(m.sizes[u.dim] - u.size, u.step) + 1;
  m.strides[u.dim] = stride * u.step;
  m.sizes.push_back(u.size);
  m.strides.push_back(stride);
  return m;
}

TensorMeta applied(const remap::Strided& s, TensorMeta m) {
  m.sizes = s.sizes;
  m.strides = s.strides;
  m.offset = s.offset;
  return m;
}

TensorMeta applied(const remap::Reinterpret& r, TensorMeta m) {
  auto from = static_cast<int64_t>(item_size(m.dtype)), to = static_cast<int64_t>(item_size(r.dtype));
  m.dtype = r.dtype;
  if (from == to) return m;
  require(m.rank() > 0, "view: a 0-d tensor cannot be seen as a dtype of another size");
  require(m.strides.back() == SymInt(1), "view: to see it as ", r.dtype,
          " the last dimension must be contiguous, its stride is ", m.strides.back());
  for (size_t i = 0; i < m.rank(); ++i) {
    SymInt& size = m.sizes[i];
    SymInt& stride = m.strides[i];
    if (i + 1 == m.rank()) size = sym::floor_div(size * from, to);
    else stride = sym::floor_div(stride * from, to);
  }
  m.offset = sym::floor_div(m.offset * from, to);
  return m;
}

TensorMeta applied(const remap::AsReal&, TensorMeta m) {
  require(is_complex(m.dtype), "view_as_real: expected a tensor of complex numbers, got ", m);
  m.dtype = real_of(m.dtype);
  for (SymInt& stride : m.strides) stride = stride * 2;
  m.offset = m.offset * 2;
  m.sizes.push_back(2);
  m.strides.push_back(1);
  return m;
}

TensorMeta applied(const remap::AsComplex& part, TensorMeta m) {
  require(
      m.rank() > 0 && m.sizes.back() == SymInt(2) && !is_complex(m.dtype) && real_of(complex_of(m.dtype)) == m.dtype,
      "view_as_complex: expected a floating point tensor with a last dimension of two, got ", m);
  require(is_view(part, m), "view_as_complex: expected pairs that lie side by side, got ", m, " with strides ",
          m.strides, "; make it contiguous first");
  m.dtype = complex_of(m.dtype);
  m.sizes.pop_back();
  m.strides.pop_back();
  for (SymInt& stride : m.strides) stride = sym::floor_div(stride, 2);
  m.offset = sym::floor_div(m.offset, 2);
  return m;
}

TensorMeta applied(const remap::Conjugate&, TensorMeta m) { return m; }

TensorMeta applied(const remap::Stop&, TensorMeta m) {
  m.requires_grad = false;
  return m;
}

}  // namespace

TensorMeta viewed(const remap::Part& part, const TensorMeta& base) {
  TensorMeta meta = std::visit([&](const auto& s) { return applied(s, base); }, part);
  meta.wrapped_number = false;
  return meta;
}

TensorMeta viewed(const IndexMap& map, const TensorMeta& base) {
  TensorMeta meta = base;
  for (const remap::Part& part : map.parts) meta = viewed(part, meta);
  return meta;
}

bool is_view(const remap::Part& part, const TensorMeta& base) {
  if (auto* r = std::get_if<remap::Reshape>(&part)) return view_strides(base.sizes, base.strides, r->sizes).has_value();
  if (!std::holds_alternative<remap::AsComplex>(part) || base.rank() == 0) return true;
  auto odd = [](SymInt e) { return e.is_int() && e.as_int() % 2 != 0; };
  for (size_t i = 0; i + 1 < base.rank(); ++i)
    if (odd(base.strides[i]) && !(base.sizes[i] == SymInt(1))) return false;
  return base.strides.back() == SymInt(1) && !odd(base.offset);
}

bool overlaps(const remap::Part& part, const TensorMeta& base) {
  if (auto* e = std::get_if<remap::Expand>(&part)) {
    TensorMeta result = viewed(part, base);
    for (size_t i = 0; i < e->sizes.size(); ++i)
      if (result.strides[i] == SymInt(0) && !(e->sizes[i] == SymInt(1))) return true;
    return false;
  }
  if (auto* u = std::get_if<remap::Unfold>(&part))
    return !(u->size.is_int() && u->step.is_int() && u->size.as_int() <= u->step.as_int());
  if (auto* s = std::get_if<remap::Strided>(
          &part)) {  // sorted by stride, each dim must step over the whole of the smaller ones
    std::vector<std::pair<int64_t, int64_t>> dims;
    for (size_t i = 0; i < s->sizes.size(); ++i) {
      if (!s->sizes[i].is_int() || !s->strides[i].is_int()) return true;
      if (s->sizes[i].as_int() == 0) return false;
      if (s->sizes[i].as_int() > 1) dims.emplace_back(s->strides[i].as_int(), s->sizes[i].as_int());
    }
    std::sort(dims.begin(), dims.end());
    int64_t reach = 0;
    for (auto [stride, size] : dims) {
      if (stride <= reach) return true;
      reach += stride * (size - 1);
    }
    return false;
  }
  return false;
}

void remap::append_text(std::string& out, const remap::Part& part) {
  if (auto* p = std::get_if<remap::Permute>(&part)) out += text("permute", p->dims);
  else if (auto* s = std::get_if<remap::Slice>(&part))
    out += text("slice(dim ", s->dim, ", ", s->start, " + ", s->size, " x ", s->step, ")");
  else if (auto* e = std::get_if<remap::Expand>(&part)) out += text("expand", e->sizes);
  else if (auto* r = std::get_if<remap::Reshape>(&part)) out += text("reshape", r->sizes);
  else if (auto* d = std::get_if<remap::Diagonal>(&part))
    out += text("diagonal(", d->dim1, ", ", d->dim2, ", offset ", d->offset, ")");
  else if (auto* u = std::get_if<remap::Unfold>(&part))
    out += text("unfold(dim ", u->dim, ", ", u->size, " x ", u->step, ")");
  else if (auto* t = std::get_if<remap::Strided>(&part)) out += text("strided", t->sizes, t->strides, " + ", t->offset);
  else if (auto* i = std::get_if<remap::Reinterpret>(&part)) out += text("reinterpret ", i->dtype);
  else if (std::holds_alternative<remap::AsReal>(part)) out += "as real";
  else if (std::holds_alternative<remap::AsComplex>(part)) out += "as complex";
  else if (std::holds_alternative<remap::Conjugate>(part)) out += "conjugate";
  else out += "stop";
}

}  // namespace tenon
