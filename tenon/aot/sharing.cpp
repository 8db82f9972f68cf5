#include "tenon/aot/sharing.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/view_writes.h"

namespace tenon {
namespace {

struct Extent {
  int64_t begin, end;  // in bytes
};
Extent extent(const TensorMeta& place) {
  int64_t last = place.offset.as_int();
  for (SymInt size : place.sizes)
    if (size == SymInt(0)) return {0, 0};
  for (size_t d = 0; d < place.rank(); ++d) last += (place.sizes[d].as_int() - 1) * place.strides[d].as_int();
  auto item = static_cast<int64_t>(item_size(place.dtype));
  return {place.offset.as_int() * item, (last + 1) * item};
}
bool meet(const TensorMeta& a, const TensorMeta& b) {
  Extent x = extent(a), y = extent(b);
  return x.begin < y.end && y.begin < x.end;  // never true of an empty one
}

}  // namespace

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
    if (!s.inputs.empty() && s.places[0].dtype != t.dtype()) {
      for (const TensorMeta& place : s.places)
        if (meet(place, t.meta())) {
          s.otherwise.push_back(input);
          break;
        }
      continue;
    }
    s.inputs.push_back(input);
    s.places.push_back(t.meta());
    s.elements = static_cast<int64_t>(t.storage()->size() / item_size(t.dtype()));
  }
  std::erase_if(out, [](const Sharing& s) { return s.inputs.size() + s.otherwise.size() < 2; });
  return out;
}

std::string to_text(const Sharing& sharing, const ExportedProgram& program) {
  std::vector<std::string> members;
  for (size_t k = 0; k < sharing.inputs.size(); ++k) {
    const TensorMeta& place = sharing.places[k];
    members.push_back(text(program.signature.inputs[sharing.inputs[k]].name, " is ", place.dtype, place.sizes, " by ",
                           place.strides, " from ", place.offset));
  }
  for (size_t i : sharing.otherwise) members.push_back(program.signature.inputs[i].name + " is of another dtype");
  return join(members, ", ");
}

void share(const Sharing& sharing, const GraphBody& from, Functionalizer& functionalizer,
           std::vector<CallArg>& values) {
  auto memory = std::make_shared<Memory>();
  Tensor first, everyone;  // everyone: the sum of what each holds, which nobody reads and all get gradients through
  bool overlap = false;
  for (size_t k = 0; k < sharing.places.size(); ++k)
    for (size_t other = 0; other < k; ++other) overlap = overlap || meet(sharing.places[other], sharing.places[k]);
  overlap = overlap && is_differentiable(sharing.places[0].dtype);
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
      if (overlap) {
        Tensor alone =
            as_strided_scatter(zeros(Sizes{sharing.elements}, first), t, place.sizes, place.strides, place.offset);
        everyone = everyone ? everyone + alone : alone;
      }
      memory->base = as_strided_scatter(memory->base, t, place.sizes, place.strides, place.offset);
    }
    if (everyone) memory->base = overlay(everyone, memory->base);
  }
  for (size_t k = 0; k < sharing.inputs.size(); ++k) {
    const Value* v = from.inputs[sharing.inputs[k]].get<Value>();
    if (!v || !values[v->id].is<Tensor>()) continue;
    const TensorMeta& place = sharing.places[k];
    const Tensor& own = values[v->id].as<Tensor>();
    std::vector<remap::Part> parts = {remap::Strided{place.sizes, place.strides, place.offset}};
    DispatchScope scope(&functionalizer.tracer);
    Tensor current = everyone ? read_through(IndexMap{parts}, memory->base) : functionalizer.read(own);
    values[v->id] = functionalizer.look(memory, functionalizer.along(whole, parts), own.meta(), std::move(current));
  }
}

}  // namespace tenon
