// One transform along one dimension of pairs, which the library computes, and what is made of it.
#include "tenon/ops/fourier.h"

#include <algorithm>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/flip.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/padding.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle fft_fft, fft_ifft, fft_rfft, fft_irfft;

static Handle fft_hfft, fft_ihfft, fourier, from_real, of_complex, to_real;

namespace {

// What a call transforms, by `dim`, and in which order the result lies in memory, as PyTorch's does: dimensions that
// are not transformed first, by their strides; then the others by theirs, or with the last one last.
struct FourierOrder {
  std::vector<size_t> dims;  // transformed
  Sizes to, back;            // permutations: to this order, and from it

  FourierOrder(const TensorMeta& x, std::vector<size_t> given, bool last_stays) : dims(std::move(given)) {
    auto further = [&](size_t a, size_t b) {
      const SymInt &p = x.strides[a], &q = x.strides[b];
      return p.is_int() && q.is_int() ? p.as_int() > q.as_int() : false;
    };
    std::stable_sort(dims.begin(), dims.end() - (last_stays ? 1 : 0), further);
    std::vector<size_t> order;
    for (size_t d = 0; d < x.rank(); ++d)
      if (std::find(dims.begin(), dims.end(), d) == dims.end()) order.push_back(d);
    std::stable_sort(order.begin(), order.end(), further);
    order.insert(order.end(), dims.begin(), dims.end());
    back = Sizes(x.rank(), SymInt(0));
    for (size_t i = 0; i < order.size(); ++i) {
      to.push_back(static_cast<int64_t>(order[i]));
      back[order[i]] = static_cast<int64_t>(i);
    }
  }
};

std::vector<size_t> transformed_dims(const ArgsView& call, size_t rank) {
  std::vector<size_t> out;
  for (SymInt d : call.ints("dim")) {
    call.require(d.is_int(), "expected numbers as dims, got ", call.ints("dim"));
    out.push_back(normal_dim(d.as_int(), rank));
  }
  call.require(!out.empty(), "expected at least one dimension to transform");
  return out;
}

// The last dimensions of pairs transformed, one after the other.
Tensor last_transformed(Tensor pairs, size_t how_many, bool forward, int64_t normalization) {
  for (size_t i = 0; i < how_many; ++i)
    pairs = fourier(pairs, static_cast<int64_t>(pairs.rank() - 2 - i), forward, normalization);
  return pairs;
}

Tensor complex_transformed(const Tensor& x, std::vector<size_t> dims, bool forward, int64_t normalization) {
  FourierOrder order(x.meta(), std::move(dims), false);
  Tensor pairs = view_as_real(permute(x, order.to));
  return permute(view_as_complex(last_transformed(pairs, order.dims.size(), forward, normalization)), order.back);
}

Results complex_to_complex(Build& b) {
  Tensor x = b["self"];
  b.require(is_complex(x.dtype()), "expected a tensor of complex numbers, got ", x.meta());
  return one(complex_transformed(x, transformed_dims(b, x.rank()), b.flag("forward"), b.constant("normalization")));
}

Results real_to_complex(Build& b) {
  Tensor x = b["self"];
  b.require(is_floating(x.dtype()), "expected a floating point tensor, got ", x.meta());
  FourierOrder order(x.meta(), transformed_dims(b, x.rank()), true);
  Tensor pairs = view_as_real(joined({permute(x, order.to), Tensor::number(0.0)}));
  pairs = last_transformed(pairs, order.dims.size(), true, b.constant("normalization"));
  if (b.flag("onesided")) {  // made anew: a slice would lie otherwise
    SymInt half = sym::floor_div(x.sizes()[order.dims.back()], 2) + 1;
    pairs = clone(slice(pairs, -2, 0, half), MemoryFormat::contiguous);
  }
  return permute(view_as_complex(pairs), order.back);
}

// The frequencies that are left out are the conjugates of those that are there, in the other direction.
Results complex_to_real(Build& b) {
  Tensor x = b["self"];
  b.require(is_complex(x.dtype()), "expected a tensor of complex numbers, got ", x.meta());
  std::vector<size_t> dims = transformed_dims(b, x.rank());
  SymInt n = b.integer("last_dim_size");
  int64_t normalization = b.constant("normalization");
  size_t last = dims.back();
  dims.pop_back();
  if (!dims.empty()) x = complex_transformed(x, std::move(dims), false, normalization);
  FourierOrder order(x.meta(), {last}, true);
  Tensor half = slice(view_as_real(permute(x, order.to)), -2, 0, sym::floor_div(n, 2) + 1);
  Tensor rest = flip(slice(half, -2, 1, sym::floor_div(n + 1, 2)), Sizes{-2});
  Tensor mirrored = view_as_real(joined({select(rest, -1, 0), -Tensor(select(rest, -1, 1))}));
  Tensor all = last_transformed(cat(std::vector<Tensor>{half, mirrored}, -2), 1, false, normalization);
  return permute(clone(select(all, -1, 0), MemoryFormat::contiguous), order.back);
}

/// What a call transforms: the dimensions, how many elements of each, by what results are divided.
struct FourierPlan {
  std::vector<size_t> dims;
  Sizes counts;  // of the signal
  bool sized = false;
  std::string norm;

  // 0: by nothing, 1: by the root of the count, 2: by the count.
  int64_t normalization(bool forward) const {
    if (norm == "ortho") return 1;
    return (norm == "forward") == forward ? 2 : 0;
  }
  Sizes numbers(size_t first, size_t last) const {
    Sizes out;
    for (size_t i = first; i < last; ++i) out.push_back(static_cast<int64_t>(dims[i]));
    return out;
  }
  Sizes numbers() const { return numbers(0, dims.size()); }
};

// `halved`: the last dimension holds half of the frequencies of a real signal.
FourierPlan plan_of(Build& b, const Tensor& x, bool many, bool halved) {
  FourierPlan plan;
  if (b.given("norm")) plan.norm = b.string("norm");
  const CallArg& count = b.arg(many ? "s" : "n");
  auto* sizes = count.get<Sizes>();
  auto* number = count.get<SymInt>();
  if (auto* list = b.arg("dim").get<Sizes>())
    for (SymInt d : *list) plan.dims.push_back(normal_dim(d.as_int(), x.rank()));
  else if (auto* dim = b.arg("dim").get<SymInt>()) plan.dims.push_back(normal_dim(dim->as_int(), x.rank()));
  else {
    size_t first = sizes ? x.rank() - std::min(sizes->size(), x.rank()) : 0;
    for (size_t d = first; d < x.rank(); ++d) plan.dims.push_back(d);
  }
  b.require(!plan.dims.empty(), "expected at least one dimension to transform, got ", x.meta());
  b.require(!sizes || sizes->size() == plan.dims.size(), "s: expected a size for each of ", plan.dims.size(),
            " dimensions, got ", describe(count));
  for (size_t d : plan.dims) plan.counts.push_back(x.sizes()[d]);
  if (halved) plan.counts.back() = (x.sizes()[plan.dims.back()] - 1) * 2;
  plan.sized = sizes || number;
  for (size_t i = 0; i < plan.dims.size(); ++i) {
    if (sizes && (*sizes)[i] != SymInt(-1)) plan.counts[i] = (*sizes)[i];
    if (number) plan.counts[i] = *number;
  }
  return plan;
}

// Cut off or filled up with zeros to the counts of the plan.
Tensor resized(Build& b, Tensor x, const FourierPlan& plan, bool halved) {
  if (!plan.sized) return x;
  Sizes padding(2 * x.rank(), SymInt(0));
  bool pads = false;
  for (size_t i = 0; i < plan.dims.size(); ++i) {
    size_t d = plan.dims[i];
    SymInt wanted = plan.counts[i], has = x.sizes()[d];
    if (halved && i + 1 == plan.dims.size()) wanted = sym::floor_div(wanted, 2) + 1;
    if (wanted == has) continue;
    b.supports(wanted.is_int() && has.is_int(), "a transform of ", wanted, " elements of ", has,
               " is supported where both are constants");
    if (wanted.as_int() < has.as_int()) x = slice(x, static_cast<int64_t>(d), 0, wanted);
    else padding[2 * (x.rank() - 1 - d) + 1] = wanted - has, pads = true;
  }
  return pads ? Tensor(constant_pad_nd(x, padding)) : x;
}

Tensor as_complex(const Tensor& x) { return to(x, complex_of(x.dtype())); }
Tensor as_floating(const Tensor& x) { return is_floating(x.dtype()) ? x : to(x, DType::f32); }

Results along_one(Build& b, bool forward) {
  Tensor x = b["self"];
  FourierPlan plan = plan_of(b, x, false, false);
  x = resized(b, x, plan, false);
  int64_t norm = plan.normalization(forward);
  if (is_complex(x.dtype())) return of_complex(x, plan.numbers(), norm, forward);
  Tensor out = from_real(as_floating(x), plan.numbers(), norm, false);
  return forward ? one(out) : conjugate(out);
}

Results along_many(Build& b, bool forward) {
  Tensor x = b["self"];
  FourierPlan plan = plan_of(b, x, true, false);
  x = resized(b, as_complex(x), plan, false);
  return of_complex(x, plan.numbers(), plan.normalization(forward), forward);
}

// Of real numbers: half of the frequencies say it all.
Results of_real(Build& b, bool many) {
  Tensor x = b["self"];
  b.require(!is_complex(x.dtype()), "expected a tensor of real numbers, got ", x.meta());
  FourierPlan plan = plan_of(b, x, many, false);
  x = resized(b, x, plan, false);
  return from_real(as_floating(x), plan.numbers(), plan.normalization(true), true);
}

Results real_of_half(Build& b, bool many) {
  Tensor x = b["self"];
  FourierPlan plan = plan_of(b, x, many, true);
  x = resized(b, as_complex(x), plan, true);
  return to_real(x, plan.numbers(), plan.normalization(false), plan.counts.back());
}

// Real frequencies of a signal that is half of a symmetric one.
Results hermitian(Build& b, bool many) {
  Tensor x = b["self"];
  FourierPlan plan = plan_of(b, x, many, true);
  size_t last = plan.dims.size() - 1;
  int64_t norm = plan.normalization(true);
  x = resized(b, as_complex(x), plan, true);
  if (last > 0) x = of_complex(x, plan.numbers(0, last), norm, true);
  x = clone(conjugate(x));
  return to_real(x, plan.numbers(last, last + 1), norm, plan.counts.back());
}

Results from_hermitian(Build& b, bool many) {
  Tensor x = b["self"];
  FourierPlan plan = plan_of(b, x, many, false);
  size_t last = plan.dims.size() - 1;
  int64_t norm = plan.normalization(false);
  x = resized(b, x, plan, false);
  x = from_real(as_floating(x), plan.numbers(last, last + 1), norm, true);
  if (!many) return conjugate(x);
  x = conjugated(x);
  return last == 0 ? one(x) : of_complex(x, plan.numbers(0, last), norm, false);
}

}  // namespace

void register_fourier(Registry& ops) {
  ops.add(
      fourier,
      {
          // normalization: 0 divides by nothing, 1 by the root of the size, 2 by the size
          .schema = "tenon::fourier(Tensor self, int dim, bool forward, int normalization) -> Tensor",
          .meta = [](MetaCall& m) -> Metas {
            const TensorMeta& x = m.meta("self");
            m.require(x.rank() >= 2 && x.sizes.back() == SymInt(2) && (x.dtype == DType::f32 || x.dtype == DType::f64),
                      "expected pairs of f32 or f64, got ", x);
            return like(x, x.sizes);
          },
          .to_torch = [](Build& b) -> Results {
            return view_as_real(of_complex(view_as_complex(b["self"]), Sizes{b.integer("dim")}, b.arg("normalization"),
                                           b.arg("forward")));
          },
          .vjp = {{"self",
                   [](Vjp& v) { return fourier(v.grad(), v.arg("dim"), !v.flag("forward"), v.arg("normalization")); }}},
          .host = {.name = "fourier"},
      });
  ops.add(of_complex, {
                          .schema = "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
                          .kind = OpKind::composite,
                          .decompose = complex_to_complex,
                      });
  ops.add(from_real, {
                         .schema = "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
                         .kind = OpKind::composite,
                         .decompose = real_to_complex,
                     });
  ops.add(to_real, {
                       .schema = "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
                       .kind = OpKind::composite,
                       .decompose = complex_to_real,
                   });
#define TENON_FOURIER(name, rule, ...)                                                                               \
  ops.add(fft_##name, {.schema = "fft_" #name "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", \
                       .kind = OpKind::composite,                                                                    \
                       .decompose = [](Build& b) { return rule(b __VA_ARGS__); }})
#define TENON_FOURIER_OF_TWO(name, rule, ...)                                                                        \
  ops.add({.schema = "fft_" #name "(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor", \
           .kind = OpKind::composite,                                                                                \
           .decompose = [](Build& b) { return rule(b __VA_ARGS__); }})
#define TENON_FOURIER_OF_ALL(name, rule, ...)                                                                     \
  ops.add({.schema = "fft_" #name "(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", \
           .kind = OpKind::composite,                                                                             \
           .decompose = [](Build& b) { return rule(b __VA_ARGS__); }})
  TENON_FOURIER(fft, along_one, , true);
  TENON_FOURIER(ifft, along_one, , false);
  TENON_FOURIER(rfft, of_real, , false);
  TENON_FOURIER(irfft, real_of_half, , false);
  TENON_FOURIER(hfft, hermitian, , false);
  TENON_FOURIER(ihfft, from_hermitian, , false);
  TENON_FOURIER_OF_TWO(fft2, along_many, , true);
  TENON_FOURIER_OF_TWO(ifft2, along_many, , false);
  TENON_FOURIER_OF_TWO(rfft2, of_real, , true);
  TENON_FOURIER_OF_TWO(irfft2, real_of_half, , true);
  TENON_FOURIER_OF_TWO(hfft2, hermitian, , true);
  TENON_FOURIER_OF_TWO(ihfft2, from_hermitian, , true);
  TENON_FOURIER_OF_ALL(fftn, along_many, , true);
  TENON_FOURIER_OF_ALL(ifftn, along_many, , false);
  TENON_FOURIER_OF_ALL(rfftn, of_real, , true);
  TENON_FOURIER_OF_ALL(irfftn, real_of_half, , true);
  TENON_FOURIER_OF_ALL(hfftn, hermitian, , true);
  TENON_FOURIER_OF_ALL(ihfftn, from_hermitian, , true);
}

}  // namespace tenon
