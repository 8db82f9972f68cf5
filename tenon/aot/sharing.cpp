#include "tenon/aot/sharing.h"

#include "tenon/ops/creation.h"
#include "tenon/ops/view_writes.h"

namespace tenon {

std::vector<Sharing> sharings_of(const ExportedProgram& program, const std::vector<CallArg>& user_inputs) {
  std::vector<std::pair<Tensor, size_t>> tensors;
  StateIndex state(program);
  size_t leaf = 0;
  for (size_t i = 0; i < program.signature.inputs.size(); ++i) {
    const InputSpec& spec = program.signature.inputs[i];
    Tensor t;
    if (spec.kind == InputKind::user_input) {
      if (leaf < user_inputs.size())
        if (auto* given = user_inputs[leaf].get<Tensor>()) t = *given;
      ++leaf;
    } else if (spec.kind != InputKind::token && spec.kind != InputKind::custom_object) {
      t = state.tensor_of(spec);
    }
    if (t && t.storage() && t.storage()->size() > 0) tensors.emplace_back(t, i);
  }
  std::vector<Sharing> out;
  std::unordered_map<const Storage*, size_t> by_storage;
  for (auto& [t, input] : tensors) {
    auto [at, fresh] = by_storage.try_emplace(t.storage().get(), out.size());
    if (fresh) out.emplace_back();
    Sharing& s = out[at->second];
    if (!s.inputs.empty() && s.places[0].dtype != t.dtype()) continue;  // seen as two dtypes: not one memory to us
    s.inputs.push_back(input);
    s.places.push_back(t.meta());
    s.elements = static_cast<int64_t>(t.storage()->size() / item_size(t.dtype()));
  }
  std::erase_if(out, [](const Sharing& s) { return s.inputs.size() < 2; });
  return out;
}

void share(const Sharing& sharing, const GraphBody& from, Functionalizer& functionalizer,
           std::vector<CallArg>& values) {
  auto memory = std::make_shared<Memory>();
  Tensor first;
  {
    DispatchScope scope(&functionalizer.tracer);
    for (size_t k = 0; k < sharing.inputs.size(); ++k) {
      const Value* v = from.inputs[sharing.inputs[k]].get<Value>();
      if (!v || !values[v->id].is<Tensor>()) continue;
      Tensor t = functionalizer.read(values[v->id].as<Tensor>());
      if (!first) {
        first = t;
        memory->base = zeros(Sizes{sharing.elements}, t);
        memory->input = functionalizer.find(values[v->id].as<Tensor>()).memory->input;
      }
      const TensorMeta& place = sharing.places[k];
      memory->base = as_strided_scatter(memory->base, t, place.sizes, place.strides, place.offset);
    }
  }
  for (size_t k = 0; k < sharing.inputs.size(); ++k) {
    const Value* v = from.inputs[sharing.inputs[k]].get<Value>();
    if (!v || !values[v->id].is<Tensor>()) continue;
    const TensorMeta& place = sharing.places[k];
    const Tensor& own = values[v->id].as<Tensor>();
    values[v->id] = functionalizer.look(memory, {remap::Strided{place.sizes, place.strides, place.offset}}, own.meta(),
                                        functionalizer.read(own));
  }
}

}  // namespace tenon
