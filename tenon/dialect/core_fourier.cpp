// Fourier transforms as PyTorch writes them in the core dialect. Complex numbers are shown and converted only: neither
// these operators nor those they become are registered, so the latter and their metas are here.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "tenon/dialect/parts.h"
#include "tenon/dialect/rules.h"

namespace tenon::dialect {
namespace {

enum class Transform : uint8_t { from_real, complex, to_real, conjugate, conjugate_now };

const std::array<Op, 5>& transforms() {
  static const std::array<Op, 5> all = [] {
    constexpr const char* schemas[] = {
        "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
        "_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor",
        "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
        "_conj(Tensor self) -> Tensor",
        "_conj_physical(Tensor self) -> Tensor",
    };
    std::array<Op, 5> ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      ops[i].schema = parse_schema(schemas[i]);
      ops[i].kind = OpKind::structural;
      ops[i].traits.unknown = true;
      ops[i].target = text("torch.ops.aten.", ops[i].schema.base(), ".default");
    }
    return ops;
  }();
  return all;
}

template <class... A>
Tensor transformed(Transform how, const A&... args) {
  CallArgs given = {CallArg(args)...};
  return call_op(transforms()[static_cast<size_t>(how)], std::move(given));
}

DType complex_of(DType dtype) {
  if (is_complex(dtype)) return dtype;
  return dtype == DType::f64 ? DType::c128 : dtype == DType::f16 ? DType::c32 : DType::c64;
}
DType real_of(DType dtype) { return dtype == DType::c128 ? DType::f64 : dtype == DType::c32 ? DType::f16 : DType::f32; }

// Files leave defaults out, and nothing is known of these operators beyond their files.
CallArg argument(Build& b, const char* name) {
  int at = b.op.schema.find(name);
  return at < 0 ? CallArg() : b.args[static_cast<size_t>(at)];
}

/// What a call transforms: the dimensions, how many elements of each, by what results are divided.
struct Plan {
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
std::optional<Plan> plan_of(Build& b, const Tensor& x, bool many, bool halved, size_t usual) {
  Plan plan;
  CallArg norm = argument(b, "norm"), dim = argument(b, "dim"), count = argument(b, many ? "s" : "n");
  if (auto* name = norm.get<std::string>()) plan.norm = *name;
  auto add = [&](SymInt d) { plan.dims.push_back(normal_dim(d.as_int(), x.rank())); };
  if (auto* list = dim.get<Sizes>()) std::for_each(list->begin(), list->end(), add);
  else if (auto* one_dim = dim.get<SymInt>()) add(*one_dim);
  else if (auto* sizes = count.get<Sizes>(); sizes && usual == 0)
    for (size_t i = 0; i < sizes->size(); ++i) plan.dims.push_back(x.rank() - sizes->size() + i);
  else
    for (size_t i = 0; i < (usual == 0 ? x.rank() : usual); ++i)
      plan.dims.push_back(x.rank() - (usual == 0 ? x.rank() : usual) + i);
  for (size_t d : plan.dims) plan.counts.push_back(x.sizes()[d]);
  if (plan.dims.empty() || !is_static(x)) return std::nullopt;
  if (halved) plan.counts.back() = (x.sizes()[plan.dims.back()] - 1) * 2;
  auto* sizes = count.get<Sizes>();
  auto* number = count.get<SymInt>();
  if (sizes && sizes->size() != plan.dims.size()) return std::nullopt;
  plan.sized = sizes || number;
  for (size_t i = 0; i < plan.dims.size(); ++i) {
    if (sizes && (*sizes)[i] != SymInt(-1)) plan.counts[i] = (*sizes)[i];
    if (number) plan.counts[i] = *number;
  }
  return plan;
}

// Cut off or filled up with zeros to the counts of the plan.
Tensor resized(Tensor x, const Plan& plan, bool halved) {
  if (!plan.sized) return x;
  Sizes padding(2 * x.rank(), SymInt(0));
  bool pads = false;
  for (size_t i = 0; i < plan.dims.size(); ++i) {
    size_t d = plan.dims[i];
    int64_t wanted = plan.counts[i].as_int(), has = x.sizes()[d].as_int();
    if (halved && i + 1 == plan.dims.size()) wanted = wanted / 2 + 1;
    if (wanted < has) x = aten("slice.Tensor", x, static_cast<int64_t>(d), 0, wanted);
    if (wanted > has) padding[2 * (x.rank() - 1 - d) + 1] = wanted - has;
    pads = pads || wanted > has;
  }
  return pads ? Tensor(aten("constant_pad_nd", x, padding)) : x;
}

Tensor as_complex(const Tensor& x) {
  return is_complex(x.dtype()) ? x : Tensor(aten("_to_copy", x, kw("dtype", complex_of(x.dtype()))));
}

Results along_one(Build& b, bool forward) {
  Tensor x = b["self"];
  auto plan = plan_of(b, x, false, false, 1);
  if (!plan) return {};
  x = resized(x, *plan, false);
  int64_t norm = plan->normalization(forward);
  if (is_complex(x.dtype())) return one(transformed(Transform::complex, x, plan->numbers(), norm, forward));
  Tensor out = transformed(Transform::from_real, x, plan->numbers(), norm, false);
  return one(forward ? out : transformed(Transform::conjugate, out));
}

Results along_many(Build& b, bool forward, size_t usual) {
  Tensor x = b["self"];
  auto plan = plan_of(b, x, true, false, usual);
  if (!plan) return {};
  x = resized(as_complex(x), *plan, false);
  return one(transformed(Transform::complex, x, plan->numbers(), plan->normalization(forward), forward));
}

// Of real numbers: half of the frequencies say it all.
Results of_real(Build& b, bool many, size_t usual) {
  Tensor x = b["self"];
  auto plan = plan_of(b, x, many, false, usual);
  if (!plan) return {};
  x = resized(x, *plan, false);
  return one(transformed(Transform::from_real, x, plan->numbers(), plan->normalization(true), true));
}

Results to_real(Build& b, bool many, size_t usual) {
  Tensor x = b["self"];
  auto plan = plan_of(b, x, many, true, usual);
  if (!plan) return {};
  x = resized(as_complex(x), *plan, true);
  return one(transformed(Transform::to_real, x, plan->numbers(), plan->normalization(false), plan->counts.back()));
}

// Real frequencies of a signal that is half of a symmetric one.
Results hermitian(Build& b, bool many, size_t usual) {
  Tensor x = b["self"];
  auto plan = plan_of(b, x, many, true, usual);
  if (!plan) return {};
  size_t last = plan->dims.size() - 1;
  int64_t norm = plan->normalization(true);
  x = resized(as_complex(x), *plan, true);
  if (last > 0) x = transformed(Transform::complex, x, plan->numbers(0, last), norm, true);
  x = aten("clone", transformed(Transform::conjugate, x));
  return one(transformed(Transform::to_real, x, plan->numbers(last, last + 1), norm, plan->counts.back()));
}

Results from_hermitian(Build& b, bool many, size_t usual) {
  Tensor x = b["self"];
  auto plan = plan_of(b, x, many, false, usual);
  if (!plan) return {};
  size_t last = plan->dims.size() - 1;
  int64_t norm = plan->normalization(false);
  x = resized(x, *plan, false);
  x = transformed(Transform::from_real, x, plan->numbers(last, last + 1), norm, true);
  if (!many) return one(transformed(Transform::conjugate, x));
  x = transformed(Transform::conjugate_now, x);
  return one(last == 0 ? x : transformed(Transform::complex, x, plan->numbers(0, last), norm, false));
}

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all = {
      {"aten::fft_fft", [](Build& b) { return along_one(b, true); }},
      {"aten::fft_ifft", [](Build& b) { return along_one(b, false); }},
      {"aten::fft_fft2", [](Build& b) { return along_many(b, true, 2); }},
      {"aten::fft_ifft2", [](Build& b) { return along_many(b, false, 2); }},
      {"aten::fft_fftn", [](Build& b) { return along_many(b, true, 0); }},
      {"aten::fft_ifftn", [](Build& b) { return along_many(b, false, 0); }},
      {"aten::fft_rfft", [](Build& b) { return of_real(b, false, 1); }},
      {"aten::fft_rfft2", [](Build& b) { return of_real(b, true, 2); }},
      {"aten::fft_rfftn", [](Build& b) { return of_real(b, true, 0); }},
      {"aten::fft_irfft", [](Build& b) { return to_real(b, false, 1); }},
      {"aten::fft_irfft2", [](Build& b) { return to_real(b, true, 2); }},
      {"aten::fft_irfftn", [](Build& b) { return to_real(b, true, 0); }},
      {"aten::fft_hfft", [](Build& b) { return hermitian(b, false, 1); }},
      {"aten::fft_hfft2", [](Build& b) { return hermitian(b, true, 2); }},
      {"aten::fft_hfftn", [](Build& b) { return hermitian(b, true, 0); }},
      {"aten::fft_ihfft", [](Build& b) { return from_hermitian(b, false, 1); }},
      {"aten::fft_ihfft2", [](Build& b) { return from_hermitian(b, true, 2); }},
      {"aten::fft_ihfftn", [](Build& b) { return from_hermitian(b, true, 0); }},
  };
  return all;
}

}  // namespace

Rule fourier_rule(std::string_view op) {
  auto at = rules().find(op);
  return at == rules().end() ? nullptr : at->second;
}

std::optional<Metas> fourier_metas(const Op& op, std::span<const CallArg> args) {
  const std::array<Op, 5>& all = transforms();
  auto at = std::find_if(all.begin(), all.end(), [&](const Op& each) { return &each == &op; });
  if (at == all.end()) return std::nullopt;
  const TensorMeta& x = args[0].as<Tensor>().meta();
  Sizes sizes = x.sizes;
  DType dtype = x.dtype;
  auto last = [&]() -> SymInt& {
    return sizes[static_cast<size_t>(args[1].as<Sizes>().begin()[args[1].as<Sizes>().size() - 1].as_int())];
  };
  switch (static_cast<Transform>(at - all.begin())) {
    case Transform::from_real:
      dtype = complex_of(dtype);
      if (args[3].as<bool>()) last() = sym::floor_div(last(), SymInt(2)) + 1;
      break;
    case Transform::to_real:
      dtype = real_of(dtype);
      last() = args[3].as<SymInt>();
      break;
    case Transform::complex:
    case Transform::conjugate:
    case Transform::conjugate_now: break;
  }
  Metas out;
  out.values.emplace_back(make_meta(dtype, sizes, x.device));
  return out;
}

}  // namespace tenon::dialect
