#include "tenon/optimize/pack_weights.h"

#include <map>

#include "tenon/loop/pack.h"
#include "tenon/optimize/anchors.h"
#include "tenon/optimize/compact.h"

namespace tenon::optimize {
namespace {

using loop::BufferId;

bool fits(const loop::Program& program, const loop::Operand& weights, const loop::Operand& out) {
  DType from = program.buffers[weights.buffer].dtype, to = program.buffers[out.buffer].dtype;
  bool computed = to == DType::f32 || to == DType::f64 || to == DType::i64;
  bool widened = to == DType::f32 && (from == DType::f16 || from == DType::bf16);
  for (const Sizes* sizes : {&weights.sizes, &weights.strides})
    for (SymInt e : *sizes)
      if (!e.is_int()) return false;
  return computed && (from == to || widened) && weights.offset.is_int() && is_fixed(program, weights.buffer);
}

class Packing {
 public:
  Packing(loop::Program& program, const MethodChoice& choice) : program_(program), choice_(choice) {}
  void run(std::vector<loop::Step>& steps) {
    for (loop::Step& step : steps) {
      if (auto* g = std::get_if<loop::Gemm>(&step)) {
        if (!g->packed && fits(program_, g->b, g->out))
          *g = with_packed(*g, packed(loop::pack_of(*g, 0), program_.buffers[g->out.buffer].dtype));
      } else if (auto* control = std::get_if<loop::Control>(&step)) {
        for (loop::Body& body : control->bodies) run(body.steps);
      } else if (auto* c = std::get_if<loop::Convolution>(&step)) {
        if (c->packed || c->part == loop::ConvPart::weight_gradient || !c->groups.is_int()) continue;
        const loop::Operand& out = c->part == loop::ConvPart::forward ? c->y : c->x;
        if (fits(program_, c->w, out))
          *c = with_packed(*c, packed(loop::pack_of(*c, 0), program_.buffers[out.buffer].dtype, method_of(*c)));
      }
    }
  }

 private:
  loop::ConvMethod method_of(const loop::Convolution& c) const {
    if (choice_ && loop::has_methods(program_, c))
      if (std::optional<loop::ConvMethod> chosen = choice_(program_, c)) return *chosen;
    return loop::method_of(program_, c, {.weight = 0});
  }

  /// The buffer that holds these weights packed; equal ones share it.
  BufferId packed(loop::Pack pack, DType dtype, loop::ConvMethod method = loop::ConvMethod::direct) {
    const loop::Buffer& view = program_.buffers[pack.from.buffer];
    std::string key =
        text(root_of(program_, pack.from.buffer), view.dtype, view.offset + pack.from.offset, pack.from.sizes,
             pack.from.strides, pack.of_convolution, static_cast<int>(pack.part), pack.stride, pack.padding,
             pack.dilation, pack.transposed, pack.groups, dtype, static_cast<int>(method));
    auto [known, fresh] = known_.try_emplace(std::move(key), 0);
    if (!fresh) return known->second;
    const std::string name = program_.buffers[pack.from.buffer].name + "_packed";
    const Sizes sizes = method == loop::ConvMethod::winograd ? loop::transformed_sizes(pack) : loop::packed_sizes(pack);
    pack.to = known->second = add_derived(program_, name, dtype, sizes);
    program_.on_state.emplace_back(std::move(pack));
    return known->second;
  }

  loop::Program& program_;
  const MethodChoice& choice_;
  std::map<std::string, BufferId> known_;
};

}  // namespace

loop::Program pack_weights(loop::Program program, const MethodChoice& choice) {
  Packing(program, choice).run(program.steps);
  settle_derived(program);
  return compact(std::move(program));
}

}  // namespace tenon::optimize
