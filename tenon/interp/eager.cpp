#include "tenon/interp/eager.h"

#include <cstring>
#include <string>
#include <unordered_map>

#include "tenon/base/parallel.h"
#include "tenon/graph/assigns.h"
#include "tenon/interp/anchors.h"
#include "tenon/interp/host.h"
#include "tenon/interp/stage.h"
#include "tenon/ops/conversion.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/lowering_options.h"

namespace tenon::interp {
namespace {

/// A call made ready to run: what its results are, and its steps.
struct PreparedCall {
  Metas metas;
  loop::Program program;
  std::vector<std::variant<CompiledStage, PreparedAnchor>> steps;
  std::vector<size_t> temporaries;  // bytes, per buffer; 0 for inputs and outputs
};

void append_bytes(std::string& key, const void* data, size_t n) { key.append(static_cast<const char*>(data), n); }
template <class T>
void append_raw(std::string& key, T value) {
  append_bytes(key, &value, sizeof value);
}

// Everything a kernel depends on: dtypes, sizes and strides of tensors, and the other arguments.
void append_key(std::string& key, const CallArg& arg) {
  append_raw(key, static_cast<uint8_t>(arg.v.index()));
  if (auto* t = arg.get<Tensor>()) {
    if (!*t) return;
    const TensorMeta& m = t->meta();
    append_raw(key, static_cast<uint8_t>(m.dtype));
    append_raw(key, static_cast<uint8_t>(m.rank() * 2 + m.wrapped_number));
    for (const SymInt& s : m.sizes) append_raw(key, s.as_int());
    for (const SymInt& s : m.strides) append_raw(key, s.as_int());
  } else if (auto* l = arg.get<std::vector<Tensor>>()) {
    append_raw(key, l->size());
    for (const Tensor& t : *l) append_key(key, CallArg(t));
  } else if (auto* s = arg.get<SymInt>()) {
    append_raw(key, s->is_int() ? s->as_int() : static_cast<int64_t>(s->hash()));
  } else if (auto* b = arg.get<bool>()) append_raw(key, *b);
  else if (auto* d = arg.get<double>()) append_raw(key, *d);
  else if (auto* d2 = arg.get<DType>()) append_raw(key, *d2);
  else if (auto* list = arg.get<Sizes>()) {
    append_raw(key, list->size());
    for (const SymInt& i : *list) append_raw(key, i.as_int());
  } else if (!arg.is_none()) key += describe(arg) + '\0';
}

std::shared_ptr<PreparedCall> prepare_call(const Op& op, std::span<const CallArg> args) {
  auto kernel = std::make_shared<PreparedCall>();
  std::optional<Metas> metas = infer(op, args);
  expect(metas.has_value(), op.name(), " has no rule for its results");
  kernel->metas = std::move(*metas);
  Lower lower(op, args, kernel->metas.values, kernel->program);
  lower_op(lower);
  const sym::Bindings none;
  Resolved resolved{kernel->program, kernel->program.buffers, none};
  for (const loop::Step& step : kernel->program.steps) {
    if (auto* stage = std::get_if<loop::Stage>(&step)) kernel->steps.emplace_back(CompiledStage(resolved, *stage));
    else kernel->steps.emplace_back(PreparedAnchor(resolved, step));
  }
  for (const loop::Buffer& b : kernel->program.buffers)
    kernel->temporaries.push_back(
        b.role == loop::Role::arena ? static_cast<size_t>(count(b.sizes).as_int()) * item_size(b.dtype) : 0);
  return kernel;
}

// Kernels by what they depend on, per thread: no lock in the way of a small call.
const PreparedCall& prepared_call(const Op& op, std::span<const CallArg> args) {
  constexpr size_t most = 4096;  // programs with sizes that change at every call must not fill memory
  thread_local std::unordered_map<std::string, std::shared_ptr<PreparedCall>> kernels;
  thread_local std::string key;
  key.clear();
  append_raw(key, &op);
  append_raw(key, lowering_options());
  for (const CallArg& arg : args) append_key(key, arg);
  auto it = kernels.find(key);
  if (it != kernels.end()) return *it->second;
  std::string own = key;  // making a kernel may call operators
  auto made = prepare_call(op, args);
  if (kernels.size() >= most) kernels.clear();
  return *(kernels[own] = std::move(made));
}

CallResults run_stages(const Op& op, std::span<const CallArg> args) {
  const PreparedCall& kernel = prepared_call(op, args);
  SmallVector<std::byte*, 16> buffers(kernel.program.buffers.size(), nullptr);
  size_t next = 0;
  for (const CallArg& arg : args)
    for_each_tensor(arg, [&](const Tensor& t) {
      if (t) buffers[next++] = const_cast<std::byte*>(t.bytes());
    });
  CallResults results;
  results.reserve(kernel.metas.values.size());
  for (const auto& meta : kernel.metas.values) {
    results.push_back(map_tensors<Tensor>(meta, [](const TensorMeta& m) { return Tensor::empty(m); }));
    for_each_tensor(results.back(), [&](Tensor& t) { buffers[next++] = t.mutable_bytes(); });
  }
  std::vector<std::shared_ptr<Storage>> scratch;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (kernel.program.buffers[i].role == loop::Role::arena) {
      scratch.push_back(std::make_shared<Storage>(kernel.temporaries[i]));
      buffers[i] = scratch.back()->mutable_data();
    }
  for (const auto& step : kernel.steps) std::visit([&](const auto& s) { s.run(buffers.data()); }, step);
  return results;
}

CallResults run_view(const Op& op, std::span<const CallArg> args) {
  MetaCall call(op, args);
  std::vector<IndexMap> maps = op.def->view(call);
  const Tensor base = call.tensor(size_t{0});
  std::vector<Tensor> out;
  for (const IndexMap& map : maps) {
    TensorMeta meta = viewed(map, base.meta());
    require_fits(meta, base.storage()->size(), op.name());
    out.push_back(base.with_meta(std::move(meta)));
  }
  if (op.schema.returns[0].type.list) return {CallArg(std::move(out))};
  CallResults results;
  for (Tensor& t : out) results.emplace_back(std::move(t));
  return results;
}

// Writes a value over a tensor, converted and broadcast to it.
void write(Tensor& target, const Tensor& value) {
  const TensorMeta& m = target.meta();
  for (size_t i = 0; i < m.rank(); ++i)
    require(!(m.strides[i] == SymInt(0)) || m.sizes[i].as_int() <= 1,
            "a write to a tensor of which several elements share one place in memory; clone it before writing to it");
  Tensor converted = value;
  if (value.dtype() != target.dtype() || value.sizes() != target.sizes()) converted = copy(target, value);
  copy_elements(converted, target);
  target.storage()->bump_version();
}

// An in-place or out form: what its functional twin computes, written to the arguments that take it.
CallResults run_writing(const Op& op, CallArgs args) {
  CallArgs plain(args.begin(), args.begin() + static_cast<ptrdiff_t>(op.functional->schema.args.size()));
  CallResults values = execute(*op.functional, std::move(plain));
  if (op.functional->kind == OpKind::view) {  // unsqueeze_: the tensor itself becomes the view
    Tensor target = args[0].as<Tensor>();
    target.impl()->meta = values[0].as<Tensor>().meta();
    return {CallArg(target)};
  }
  CallResults results;
  size_t next = 0;
  for (size_t i = 0; i < op.schema.args.size(); ++i) {
    if (!assigns(op, i)) continue;
    expect(next < values.size(), op.name(), " writes more than ", op.functional->name(), " gives");
    Tensor target = args[i].as<Tensor>();
    Tensor value = values[next++].as<Tensor>();
    if (op.schema.args[i].keyword_only)
      require(target.sizes() == value.sizes(), op.name(), ": expected an out tensor of sizes ", value.sizes(), ", got ",
              target.meta());
    write(target, value);
    results.emplace_back(target);
  }
  return results;
}

class Eager : public Dispatcher {
 public:
  CallResults run(const Op& op, CallArgs args) override { return execute(op, std::move(args)); }
};

}  // namespace

CallResults execute(const Op& op, CallArgs args) {
  if (op.functional) return run_writing(op, std::move(args));
  switch (implementation_of(op, args)) {
    case Implementation::view: return run_view(op, args);
    case Implementation::stages: return run_stages(op, args);
    case Implementation::host: return run_host(op, args);
    case Implementation::composite: {
      Build build(op, args);
      return meaning_of(op, args)(build).values;
    }
    case Implementation::assertion: {
      check_assertion(op, args);
      return {};
    }
    case Implementation::number: return {CallArg(*infer(op, args)->values[0].get<SymInt>())};
    case Implementation::none: break;
  }
  require(op.def != nullptr, "the operator ", op.name(), " is not supported; tenon ops lists those that are");
  if (meets_complex(args))
    fail_unsupported(text("the operator ", op.name(), " of complex tensors is not supported yet"));
  fail("the operator ", op.name(), " cannot be run on its own");
}

void check_assertion(const Op& op, std::span<const CallArg> args) {
  if (!op.def->asserts) return;
  for (const Assertion& a : op.def->asserts(ArgsView(op, args))) {
    bool holds = a.tensor ? scalar_value(a.tensor) != 0 : sym::evaluate_bool(a.condition, {});
    require(holds, "an assertion of the program failed",
            a.message.empty() ? std::string() : text(": ", quoted(a.message, 300)));
  }
}

void install() {
  static Eager eager;
  set_default_dispatcher(&eager);
}

void set_threads(int count) { parallel::set_threads(count); }

}  // namespace tenon::interp
