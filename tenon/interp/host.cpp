#include "tenon/interp/host.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>

#include "kernels/library.h"
#include "tenon/base/parallel.h"
#include "tenon/plan/host.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon::interp {
namespace {

tenon_tensor c_tensor(const HostOperands& operands, const Tensor& t, bool written) {
  tenon_tensor out{};
  out.dtype = -1;
  if (!t) return out;
  require(t.rank() <= TENON_MAX_RANK, operands.name, ": expected at most ", TENON_MAX_RANK, " dimensions, got ",
          t.meta());
  Tensor own = t;
  out.data = written ? own.mutable_bytes() : const_cast<std::byte*>(t.bytes());
  out.dtype = static_cast<int32_t>(t.dtype());
  out.rank = static_cast<int32_t>(t.rank());
  for (size_t d = 0; d < t.rank(); ++d) {
    out.sizes[d] = t.sizes()[d].as_int();
    out.strides[d] = t.strides()[d].as_int();
  }
  return out;
}

/// What the callbacks of one call need. Nothing is thrown through the function.
struct Callbacks {
  HostOperands& operands;
  std::vector<tenon_tensor>& results;
  std::vector<std::unique_ptr<Storage>> work;
  std::exception_ptr failed;

  template <class F>
  auto guarded(F&& f, decltype(f()) otherwise) {
    try {
      return f();
    } catch (const std::bad_alloc&) { return otherwise; } catch (...) {
      failed = std::current_exception();
      return otherwise;
    }
  }
  static int allocate(const tenon_host_call* call, uint32_t result, int32_t rank, const int64_t* sizes) {
    auto& self = *static_cast<Callbacks*>(call->context);
    return self.guarded(
        [&] {
          expect(result < self.results.size() && rank >= 0 && rank <= TENON_MAX_RANK, self.operands.name,
                 " allocates a result that it does not have");
          Sizes wanted;
          for (int32_t d = 0; d < rank; ++d) wanted.push_back(sizes[d]);
          Tensor& t = self.operands.results[result];
          if (t && t.sizes() == wanted) return 0;
          t = self.operands.allocate(result, wanted);
          self.results[result] = c_tensor(self.operands, t, true);
          return 0;
        },
        static_cast<int>(TENON_KERNEL_MEMORY));
  }
  static void* reserve(const tenon_host_call* call, uint64_t bytes) {
    auto& self = *static_cast<Callbacks*>(call->context);
    if (self.operands.extent >= 0) return nullptr;
    return self.guarded(
        [&]() -> void* {
          require(bytes <= INT64_MAX / 2, self.operands.name, ": no memory for ", bytes, " bytes");
          self.work.push_back(std::make_unique<Storage>(std::max<uint64_t>(bytes, 1)));
          return self.work.back()->mutable_data();
        },
        nullptr);
  }
};

[[noreturn]] void refused(const HostOperands& operands, int status, std::span<const int64_t> counts) {
  auto code = static_cast<uint64_t>(counts[0]) - 1;
  if (status & TENON_KERNEL_INDEX) fail(operands.name, ": an index is out of range");
  if (status & TENON_KERNEL_MEMORY) fail(operands.name, ": no memory for what it computes");
  if (status & TENON_KERNEL_REFUSED && code < operands.errors.size())
    fail(plan::filled_in(operands.errors[code], counts.subspan(1)));
  fail(operands.name, ": the sizes or elements of its arguments do not go together");
}

}  // namespace

void call_host(HostOperands& operands) {
  std::vector<tenon_tensor> inputs, results;
  for (const Tensor& t : operands.inputs) inputs.push_back(c_tensor(operands, t, false));
  for (size_t i = 0; i < operands.results.size(); ++i) {
    results.push_back(c_tensor(operands, operands.results[i], true));
    results.back().dtype = static_cast<int32_t>(operands.dtypes[i]);
  }
  int64_t counts[TENON_MAX_COUNTS] = {};
  Callbacks callbacks{operands, results, {}, nullptr};
  tenon_host_call call{};
  call.inputs = inputs.data();
  call.results = results.data();
  call.params = operands.params.data();
  call.counts = counts;
  call.input_count = static_cast<uint32_t>(inputs.size());
  call.result_count = static_cast<uint32_t>(results.size());
  call.param_count = static_cast<uint32_t>(operands.params.size());
  call.context = &callbacks;
  call.allocate = Callbacks::allocate;
  call.work = Callbacks::reserve;
  std::atomic<int> status = 0;
  if (operands.extent < 0) status = operands.function(&call, 0, 1);
  else
    parallel::parallel_for(operands.extent, operands.grain,
                           [&](int64_t lo, int64_t hi) { status |= operands.function(&call, lo, hi); });
  if (callbacks.failed) std::rethrow_exception(callbacks.failed);
  if (status) refused(operands, status, counts);
  for (size_t i = 0; i < operands.results.size(); ++i)
    expect(operands.results[i].defined(), operands.name, " made no result ", i);
}

tenon_host_function host_function_of(const Op& op) {
  const HostFunction& host = op.def->host;
  tenon_host_function found = host.function ? host.function : kernels::find_host(host.name);
  expect(found != nullptr, op.name(), " names the host function ", host.name, ", which is not in the kernel library");
  return found;
}

namespace {

// A number that is returned is the element of a buffer.
DType number_dtype(const Op& op, const SchemaArg& result, std::span<const CallArg> args) {
  switch (result.type.kind) {
    case TypeKind::boolean: return DType::boolean;
    case TypeKind::floating: return DType::f64;
    case TypeKind::scalar: {  // of the kind of what it is read from
      auto* from = args.empty() ? nullptr : args[0].get<Tensor>();
      expect(from && *from, op.name(), " returns a Scalar, but of no tensor");
      if (from->dtype() == DType::boolean) return DType::boolean;
      return is_floating(from->dtype()) ? DType::f64 : DType::i64;
    }
    default: return DType::i64;
  }
}

CallArg number_of(const Tensor& t) {
  if (t.dtype() == DType::boolean) return scalar_integer(t) != 0;
  if (is_floating(t.dtype())) return scalar_value(t);
  return scalar_integer(t);
}

bool is_known(const Sizes& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](SymInt s) { return s.is_int(); });
}

// A result whose sizes are told now; the strides follow from them.
TensorMeta told_meta(const ArgsView& call, TensorMeta meta, const Sizes& sizes) {
  if (is_known(meta.sizes)) return make_meta(meta.dtype, sizes, meta.device);  // the rule could not know better
  call.require(sizes.size() == meta.rank(), "the data ask for a result of sizes ", sizes, ", expected ", meta);
  sym::Bindings told;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (meta.sizes[d].is_symbol()) told.set(meta.sizes[d], sizes[d].as_int());
  for (SymInt& s : meta.strides) {
    for (SymInt symbol : sym::symbols_of(s))
      if (!told.find(symbol)) return make_meta(meta.dtype, sizes, meta.device);
    if (!s.is_int()) s = sym::evaluate(s, told);
  }
  meta.sizes = sizes;
  return meta;
}

}  // namespace

CallResults run_host(const Op& op, std::span<const CallArg> args) {
  sym::ShapeEnv own;  // sizes that the data tell get names in it
  ArgsView call(op, args);
  std::optional<Metas> metas;
  if (op.def->meta) {
    ShapesScope scope(&own);
    metas = infer(op, args);
  }
  std::vector<Tensor> results;
  std::vector<TensorMeta> planned;
  std::vector<DType> dtypes;
  auto add = [&](TensorMeta meta) {
    results.push_back(is_known(meta.sizes) ? Tensor::empty(meta) : Tensor());
    dtypes.push_back(meta.dtype);
    planned.push_back(std::move(meta));
  };
  for (size_t i = 0; i < op.schema.returns.size(); ++i) {
    const SchemaArg& result = op.schema.returns[i];
    if (result.type.kind != TypeKind::tensor) {
      add(make_meta(number_dtype(op, result, args), {}));
      continue;
    }
    expect(metas.has_value(), op.name(), " has no rule for its results");
    for_each_tensor(metas->values.at(i), [&](const TensorMeta& m) { add(m); });
  }
  CallArgs tensors(args.begin(), args.end());  // a number in the place of a tensor is one without dimensions
  for (size_t i = 0; i < tensors.size(); ++i)
    if (op.schema.args[i].type.kind == TypeKind::tensor && tensors[i].is_number()) tensors[i] = call.tensor(i);
  auto arguments = plan::host_arguments(op.schema, std::span<const CallArg>(tensors));
  std::vector<int64_t> params;
  for (const loop::Param& p : arguments.params) params.push_back(loop::evaluate(p, {}));
  std::vector<std::string> errors = plan::host_errors(op, args);
  HostOperands operands{
      .name = op.name(),
      .function = host_function_of(op),
      .inputs = arguments.inputs,
      .results = results,
      .dtypes = dtypes,
      .params = params,
      .errors = errors,
      .allocate = [&](size_t i, const Sizes& sizes) { return Tensor::empty(told_meta(call, planned[i], sizes)); }};
  if (op.def->host.per_element) {
    operands.extent = results.at(0).numel().as_int();
    operands.grain = plan::elements_per_chunk;
  }
  call_host(operands);

  CallResults out;
  size_t next = 0;
  for (size_t i = 0; i < op.schema.returns.size(); ++i) {
    if (op.schema.returns[i].type.kind != TypeKind::tensor) out.push_back(number_of(results[next++]));
    else out.push_back(map_tensors<Tensor>(metas->values[i], [&](const TensorMeta&) { return results[next++]; }));
  }
  return out;
}

}  // namespace tenon::interp
