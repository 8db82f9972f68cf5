#include "tests/hostile/sample_values.h"

#include <set>

#include "tenon/sym/evaluate.h"

namespace tenon {
namespace {

constexpr double most_elements = 100'000;

CallArg sample(const ExportedProgram& program, const InputSpec& spec, const sym::Bindings& hints) {
  const Value* v = spec.arg.get<Value>();
  if (!v) return map_tensors<Tensor>(spec.arg, [](Value) { return Tensor(); });
  const ValueInfo& info = program.graph->info(*v);
  if (info.type == ValueType::floating) return sym::evaluate_real(info.expr, hints);
  if (info.type != ValueType::tensor) return sym::evaluate(info.expr, hints);
  Sizes sizes;
  for (SymInt e : info.meta.sizes) sizes.push_back(sym::evaluate(e, hints));
  return sample_tensor(make_meta(info.meta.dtype, sizes));
}

sym::Bindings hints_of(const ExportedProgram& program) {
  sym::Bindings hints;
  for (const auto& [name, value] : program.hints) hints.set(SymInt::symbol(name), value);
  return hints;
}

}  // namespace

Tensor sample_tensor(const TensorMeta& meta) {
  double last = 0, elements = 1;
  for (size_t i = 0; i < meta.rank(); ++i) {
    require(meta.sizes[i].is_int() && meta.strides[i].is_int(), "of a size that is not known");
    require(meta.strides[i].as_int() >= 0, "of a stride below 0");
    elements *= static_cast<double>(meta.sizes[i].as_int());
    last += static_cast<double>(meta.sizes[i].as_int() - 1) * static_cast<double>(meta.strides[i].as_int());
  }
  require(meta.offset == SymInt(0), "with an offset");
  require(elements >= 0 && elements <= most_elements && last <= most_elements, "too large to be tried");
  size_t item = item_size(meta.dtype), count = elements > 0 ? static_cast<size_t>(last) + 1 : 0;
  auto storage = std::make_shared<Storage>(count * item);
  auto* bytes = static_cast<std::byte*>(storage->mutable_data());
  bool index = is_integral(meta.dtype) && item > 1;  // small enough to be one
  for (size_t i = 0; i < count * item; ++i)
    bytes[i] = static_cast<std::byte>(item == 1 ? i % 2 : index ? (i % item == 0 ? i % 3 : 0) : (i * 7) % 64);
  return Tensor(meta, std::move(storage));
}

std::vector<CallArg> sample_arguments(const ExportedProgram& program) {
  sym::Bindings hints = hints_of(program);
  std::vector<CallArg> out;
  for (const InputSpec& spec : program.signature.inputs)
    if (spec.kind == InputKind::user_input) out.push_back(sample(program, spec, hints));
  return out;
}

std::vector<CallArg> sample_inputs(const ExportedProgram& program) {
  sym::Bindings hints = hints_of(program);
  std::vector<CallArg> out;
  for (const InputSpec& spec : program.signature.inputs) out.push_back(sample(program, spec, hints));
  return out;
}

void provide_state(ExportedProgram& program) {
  std::set<std::string> known;
  for (const auto* list : {&program.state, &program.constants})
    for (const NamedTensor& t : *list) known.insert(t.name);
  for (const InputSpec& spec : program.signature.inputs) {
    const Value* v = spec.arg.get<Value>();
    bool state =
        spec.kind == InputKind::parameter || spec.kind == InputKind::buffer || spec.kind == InputKind::constant_tensor;
    if (!state || !v || !*v || program.graph->info(*v).type != ValueType::tensor || !known.insert(spec.target).second)
      continue;
    TensorMeta meta = program.graph->info(*v).meta;
    meta.requires_grad = spec.kind == InputKind::parameter && is_floating(meta.dtype);
    bool constant = spec.kind == InputKind::constant_tensor || !spec.persistent;
    NamedTensor made{
        .name = spec.target, .tensor = sample_tensor(meta), .is_parameter = spec.kind == InputKind::parameter};
    (constant ? program.constants : program.state).push_back(std::move(made));
  }
}

}  // namespace tenon
