#include "tests/sweep/perturb.h"

#include <cstring>
#include <limits>

#include "tenon/rules/call.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/trace/trace.h"
#include "tests/sweep/compare.h"

namespace tenon::sweep {
namespace {

constexpr int64_t largest = std::numeric_limits<int64_t>::max(), smallest = std::numeric_limits<int64_t>::min();

Tensor zeros_of(DType dtype, const Sizes& sizes) {
  Tensor t = Tensor::empty(dtype, sizes);
  if (t.storage()->size()) std::memset(t.storage()->mutable_data(), 0, t.storage()->size());
  return t;
}

std::vector<CallArg> variations(const Tensor& t) {
  std::vector<CallArg> out = {CallArg()};
  const TensorMeta& m = t.meta();
  if (m.rank() > 0) {
    if (!(m.sizes[0] == SymInt(0))) {  // one dimension less
      TensorMeta less = m;
      less.sizes.erase(0);
      less.strides.erase(0);
      out.emplace_back(t.with_meta(less));
    }
    TensorMeta nothing = m;
    nothing.sizes.back() = 0;
    out.emplace_back(t.with_meta(nothing));
    Sizes longer = m.sizes;
    longer.back() = longer.back() + 1;
    out.emplace_back(zeros_of(m.dtype, longer));
    longer = m.sizes;
    longer[0] = longer[0] + 1;
    out.emplace_back(zeros_of(m.dtype, longer));
    out.emplace_back(zeros_of(m.dtype, {}));
  }
  TensorMeta more = m;
  more.sizes.push_back(1);
  more.strides.push_back(1);
  out.emplace_back(t.with_meta(more));
  for (DType dtype : {DType::boolean, DType::u8, DType::i32, DType::i64, DType::f16, DType::f32, DType::f64})
    if (dtype != m.dtype) out.emplace_back(zeros_of(dtype, m.sizes));
  if (m.dtype == DType::i64) {  // indices out of range
    for (int64_t wrong : {int64_t{-1000}, int64_t{1000}, largest, smallest}) {
      Tensor indices = zeros_of(DType::i64, m.sizes);
      for (int64_t i = 0; i < indices.numel().as_int(); ++i) indices.mutable_data<int64_t>()[i] = wrong;
      out.emplace_back(indices);
    }
  }
  return out;
}

std::vector<CallArg> variations(const CallArg& arg) {
  if (auto* t = arg.get<Tensor>()) return *t ? variations(*t) : std::vector<CallArg>{};
  if (arg.is<SymInt>()) return {0, -1, -1000, 1000, largest, smallest, 2.5, CallArg()};
  if (arg.is<double>())
    return {0.0, -1.0,     1e300, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
            -3,  CallArg()};
  if (auto* b = arg.get<bool>()) return {!*b};
  if (arg.is<std::string>()) return {"nonsense", ""};
  if (arg.is<DType>()) return {DType::boolean, DType::i64, DType::f16, DType::f64, DType::c64};
  if (arg.is<MemoryFormat>())
    return {MemoryFormat::channels_last, MemoryFormat::preserve, MemoryFormat::channels_last_3d};
  std::vector<CallArg> out;
  if (auto* sizes = arg.get<Sizes>()) {
    out.emplace_back(Sizes{});
    out.emplace_back(CallArg());
    Sizes longer = *sizes;
    longer.push_back(1);
    out.emplace_back(longer);
    if (sizes->empty()) return out;
    Sizes shorter = *sizes;
    shorter.pop_back();
    out.emplace_back(shorter);
    for (int64_t value : {int64_t{0}, int64_t{-1}, int64_t{-100}, int64_t{77}, largest, smallest}) {
      Sizes changed = *sizes;
      changed[0] = value;
      out.emplace_back(changed);
      changed = *sizes;
      changed.back() = value;
      out.emplace_back(changed);
    }
  } else if (auto* list = arg.get<std::vector<Tensor>>()) {
    out.emplace_back(std::vector<Tensor>{});
    if (list->empty()) return out;
    out.emplace_back(std::vector<Tensor>(list->begin() + 1, list->end()));
    std::vector<Tensor> repeated = *list;
    repeated.push_back(list->front());
    out.emplace_back(repeated);
    if (!list->front()) return out;
    for (const CallArg& first : variations(list->front())) {
      std::vector<Tensor> changed = *list;
      changed[0] = first.is<Tensor>() ? *first.get<Tensor>() : Tensor();
      out.emplace_back(changed);
    }
  } else if (auto* numbers = arg.get<std::vector<double>>()) {
    out.emplace_back(std::vector<double>{});
    std::vector<double> changed = *numbers;
    changed.push_back(-1e30);
    out.emplace_back(changed);
  }
  return out;
}

// More elements than a test should compute.
bool too_large(const Metas& metas) {
  bool large = false;
  for (const auto& value : metas.values)
    for_each_tensor(value, [&](const TensorMeta& m) {
      double n = 1;
      for (SymInt s : m.sizes) n *= s.is_int() ? static_cast<double>(s.as_int()) : 1;
      large |= n > 1e6;
    });
  return large;
}

Outcome differ(const Metas& metas, const CallResults& results) {
  std::vector<TensorMeta> want, got;
  for (const auto& value : metas.values) for_each_tensor(value, [&](const TensorMeta& m) { want.push_back(m); });
  for (const auto& value : results)
    for_each_tensor(value, [&](const Tensor& t) {
      if (t) got.push_back(t.meta());
    });
  if (want.size() != got.size()) return text("meta says ", want.size(), " tensors, there are ", got.size());
  for (size_t i = 0; i < want.size(); ++i)
    if (auto wrong = meta_differs(want[i], got[i])) return text("meta and result ", i, ": ", *wrong);
  return std::nullopt;
}

Outcome run_one(const Op& op, const CallArgs& args) {
  std::optional<Metas> metas;
  std::string refused;
  try {
    GraphBody scratch;
    Tracer tracer(scratch);
    CallArgs traced;
    for (const CallArg& a : args)
      traced.push_back(map_tensors<Tensor>(a, [&](const Tensor& t) {
        return t && !t.meta().wrapped_number ? tracer.tensor(add_input(scratch, "x", t.meta())) : t;
      }));
    ShapesScope shapes(&scratch.shapes);
    metas = infer_any(op, traced);
  } catch (const Error& e) { refused = e.what(); } catch (const std::exception& e) {
    return text("meta: ", e.what());
  }
  if (metas && too_large(*metas)) return std::nullopt;
  try {
    Results results = call_op(op, args);
    if (metas && !op.writes()) return differ(*metas, results.values);
    if (!metas && !op.writes()) return text("meta refuses it (", refused, "), but it runs");
  } catch (const Error&) {
  } catch (const std::exception& e) { return e.what(); }
  return std::nullopt;
}

}  // namespace

Outcome check_perturbed(const Op& op, const Case& recorded, void (*begin)(const std::string& what)) {
  size_t count = recorded.arguments(op).size();
  for (size_t i = 0; i < count; ++i) {
    size_t n = variations(recorded.arguments(op)[i]).size();
    for (size_t k = 0; k < n; ++k) {
      CallArgs args = recorded.arguments(op);
      args[i] = variations(args[i])[k];
      if (coerce(args[i], op.schema.args[i])) continue;
      std::string call = describe_call(op, args);
      begin(text("perturbed ", op.name(), " (", call, ")"));
      if (auto wrong = run_one(op, args)) return text("(", call, "): ", *wrong);
    }
  }
  return std::nullopt;
}

}  // namespace tenon::sweep
