#include "tenon/base/error.h"
#include "tenon/loop/print_expr.h"

namespace tenon::loop {
namespace {

std::string_view name(Combine combine) {
  switch (combine) {
    case Combine::sum: return "sum";
    case Combine::product: return "product";
    case Combine::min: return "min";
    case Combine::max: return "max";
    case Combine::any: return "any";
    case Combine::all: return "all";
    case Combine::argmin: return "argmin";
    case Combine::argmax: return "argmax";
  }
  unreachable();
}

std::string_view spelled(Mode mode) {
  switch (mode) {
    case Mode::set: return "=";
    case Mode::add: return "+=";
    case Mode::mul: return "*=";
    case Mode::min: return "min=";
    case Mode::max: return "max=";
  }
  unreachable();
}

std::string_view name(ConvPart part) {
  switch (part) {
    case ConvPart::forward: return "convolution";
    case ConvPart::input_gradient: return "convolution_input";
    case ConvPart::weight_gradient: return "convolution_weight";
  }
  unreachable();
}

std::string operand(const Program& program, const Operand& o) {
  return text(program.buffers[o.buffer].name, o.sizes, o.strides, o.offset == SymInt(0) ? "" : text(" + ", o.offset));
}

std::string step_text(const Program& p, const Stage& stage) {
  std::string out = text("for ", stage.domain);
  if (!stage.reduce.empty()) out += text(" reduce ", stage.reduce);
  out += ":\n";
  ExprText of(p, stage);
  out += of.definitions();
  for (size_t i = 0; i < stage.accumulators.size(); ++i) {
    const Accumulator& a = stage.accumulators[i];
    out += text("  acc", i, ": ", loop::name(a.type), " = ", name(a.combine), " ", of(a.value), "\n");
  }
  for (const Store& s : stage.stores) {
    out += text("  ", p.buffers[s.to].name, of.list(s.at), " ", spelled(s.mode), " ", of(s.value));
    if (s.where != ~0u) out += " where " + of(s.where);
    out += "\n";
  }
  return out;
}

std::string epilogue(const Program& p, const Epilogue& e) {
  return text(e.has_bias ? ", bias " + operand(p, e.bias) : std::string(),
              e.has_residual ? ", residual " + operand(p, e.residual) : std::string(), e.relu ? ", relu" : "");
}
std::string step_text(const Program& p, const Gemm& g) {
  return text(operand(p, g.out), " = gemm(", operand(p, g.a), ", ", g.packed ? "packed " : "", operand(p, g.b),
              ", alpha ", g.alpha, ", beta ", g.beta, epilogue(p, g.epilogue), ")\n");
}
std::string step_text(const Program& p, const Convolution& c) {
  return text(name(c.part), "(x ", operand(p, c.x), c.packed ? ", packed w " : ", w ", operand(p, c.w), ", y ",
              operand(p, c.y), ", stride ", c.stride, ", padding ", c.padding, ", dilation ", c.dilation,
              c.transposed ? text(", transposed, output_padding ", c.output_padding) : std::string(), ", groups ",
              c.groups, epilogue(p, c.epilogue), ")\n");
}
std::string step_text(const Program& p, const Pack& k) {
  return text(p.buffers[k.to].name, " = pack(", operand(p, k.from),
              k.of_convolution ? text(", of ", name(k.part), ", groups ", k.groups) : std::string(), ")\n");
}
std::string step_text(const Program& p, const Attention& a) {
  return text(operand(p, a.out), " = attention(", operand(p, a.q), ", ", operand(p, a.k), ", ", operand(p, a.v),
              a.has_mask ? ", mask " + operand(p, a.mask) : std::string(), a.causal ? ", causal" : "", ", scale ",
              a.scale, ")\n");
}
std::string step_text(const Program& p, const AttentionGradient& a) {
  return text("attention_gradient(", operand(p, a.grad), ", ", operand(p, a.q), ", ", operand(p, a.k), ", ",
              operand(p, a.v), ", scale ", a.scale, ")\n");
}
std::string step_text(const Program& p, const Sort& s) {
  return text(operand(p, s.values), ", ", operand(p, s.indices), " = sort(", operand(p, s.in), ", dim ", s.dim,
              s.descending ? ", descending" : "", ")\n");
}
std::string step_text(const Program& p, const TopK& s) {
  return text(operand(p, s.values), ", ", operand(p, s.indices), " = topk(", operand(p, s.in), ", dim ", s.dim, ", k ",
              s.k, ")\n");
}
std::string step_text(const Program& p, const Scan& s) {
  static constexpr std::string_view kinds[] = {"sum", "product", "max", "min", "logsumexp"};
  return text(operand(p, s.out), s.has_indices ? ", " + operand(p, s.indices) : std::string(), " = scan_",
              kinds[static_cast<size_t>(s.kind)], "(", operand(p, s.in), ", dim ", s.dim, ")\n");
}

std::string argument(const Program& p, const StepArg& arg) {
  if (auto* b = arg.get<BufferRef>()) return *b ? p.buffers[b->id].name : "None";
  if (auto* list = arg.get<std::vector<BufferRef>>()) {
    std::string out;
    for (const BufferRef& b : *list) out += text(out.empty() ? "" : ", ", b ? p.buffers[b.id].name : "None");
    return text("[", out, "]");
  }
  if (arg.is_none()) return "None";
  if (auto* b = arg.get<bool>()) return *b ? "True" : "False";
  if (auto* e = arg.get<SymInt>()) return text(*e);
  if (auto* d = arg.get<double>()) return text(*d);
  if (auto* list = arg.get<Sizes>()) return text(*list);
  if (auto* s = arg.get<std::string>()) return quoted(*s);
  if (auto* d = arg.get<DType>()) return text(*d);
  return "...";
}

std::string step_text(const Program& p, const Call& c) {
  auto list = [&](const std::vector<StepArg>& args) {
    std::string out;
    for (const StepArg& arg : args) out += text(out.empty() ? "" : ", ", argument(p, arg));
    return out;
  };
  return text(list(c.results), c.results.empty() ? "" : " = ", "call ", c.name, "(", list(c.args), ")\n");
}
std::string step_text(const Program& p, const Bind& b) {
  if (b.dim < 0) return text("bind ", b.symbol, " = ", p.buffers[b.from].name, "[]\n");
  return text("bind ", b.symbol, " = size ", b.dim, " of ", p.buffers[b.from].name, "\n");
}
std::string step_text(const Program& p, const Check& c) {
  std::string what = c.tensor == no_buffer ? text(c.condition) : text(p.buffers[c.tensor].name, "[]");
  return text("check ", what, c.message.empty() ? std::string() : text(", ", quoted(c.message)), "\n");
}

// Line by line, each behind `margin`: bodies within bodies are written once, however deep they lie.
void print(std::string& out, const Program& p, const std::vector<Step>& steps, const std::string& margin);

void print(std::string& out, const Program& p, const Control& c, const std::string& margin) {
  auto body = [&](const std::string& title, const Body& inside) {
    out += text(margin, title, ":\n");
    print(out, p, inside.steps, margin + "  ");
  };
  switch (c.kind) {
    case Control::Kind::choose:
      out += text(margin, "choose ", c.value, "\n");
      for (size_t i = 0; i < c.bodies.size(); ++i) body(text("case ", i), c.bodies[i]);
      break;
    case Control::Kind::repeat:
      body("repeat", c.bodies[0]);
      body(text("while ", c.value), c.bodies[1]);
      break;
    case Control::Kind::counted: body(text("for ", c.symbol, " below ", c.value), c.bodies[0]); break;
  }
  out += margin + "end\n";
}

template <class T>
void print(std::string& out, const Program& p, const T& step, const std::string& margin) {
  std::string lines = step_text(p, step);
  if (margin.empty()) out += lines;
  else
    for (const std::string& line : split(lines, '\n'))
      if (!line.empty()) out += text(margin, line, "\n");
}

void print(std::string& out, const Program& p, const std::vector<Step>& steps, const std::string& margin) {
  for (const Step& step : steps) std::visit([&](const auto& s) { print(out, p, s, margin); }, step);
}

std::string_view name(Role role) {
  switch (role) {
    case Role::input: return "input";
    case Role::state: return "state";
    case Role::derived: return "derived";
    case Role::output: return "output";
    case Role::arena: return "arena";
  }
  unreachable();
}

}  // namespace

std::string to_text(const Program& program) {
  std::string out;
  for (const Buffer& b : program.buffers) {
    out += text(b.view_of == no_buffer ? name(b.role) : "view", " ", b.name, ": ", b.dtype, b.sizes, b.strides);
    if (b.view_of != no_buffer) out += text(" in ", program.buffers[b.view_of].name, " from ", b.offset);
    out += "\n";
  }
  if (!program.on_state.empty()) out += "on state:\n";
  print(out, program, program.on_state, "");
  if (!program.on_state.empty()) out += "on call:\n";
  print(out, program, program.steps, "");
  for (const Output& o : program.outputs) {
    if (o.updates != ~size_t{0}) out += text("update ", program.inputs[o.updates].name, "\n");
    else if (o.buffer == no_buffer) out += text("return ", o.number, "\n");
    else out += text("return ", program.buffers[o.buffer].name, "\n");
  }
  return out;
}

namespace {

void verify_steps(const Program& program, const std::vector<Step>& steps);

void verify_step(const Program& program, const Stage& stage) {
  expect(!stage.stores.empty(), "a stage without stores");
  for (const Store& store : stage.stores) {
    expect(store.to < program.buffers.size(), "a store to a buffer that is not there");
    expect(store.at.size() == program.buffers[store.to].sizes.size(), "a store to ", program.buffers[store.to].name,
           " with ", store.at.size(), " indices");
  }
}

void verify_step(const Program& program, const Control& control) {
  size_t count = control.bodies.size();
  switch (control.kind) {
    case Control::Kind::choose: expect(count > 0, "a choice without bodies"); break;
    case Control::Kind::repeat: expect(count == 2, "a loop of ", count, " bodies where 2 are expected"); break;
    case Control::Kind::counted:
      expect(count == 1, "a counted loop of ", count, " bodies");
      expect(control.symbol.is_symbol(), "a counted loop without a symbol");
      break;
  }
  for (const Body& body : control.bodies) {
    expect(body.nodes.size() == body.steps.size(), "a body whose steps do not all say where they come from");
    verify_steps(program, body.steps);
  }
}

void verify_steps(const Program& program, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (const Stage* stage = std::get_if<Stage>(&step)) verify_step(program, *stage);
    if (const Control* control = std::get_if<Control>(&step)) verify_step(program, *control);
  }
}

}  // namespace

void verify(const Program& program) {
  for (ExprId id = 0; id < program.arena.size(); ++id) {
    const ExprNode& n = program.arena[id];
    for (ExprId arg : n.args) expect(arg < id, "an expression uses one that comes after it");
    if (n.fn == Fn::load) {
      expect(n.buffer < program.buffers.size(), "a load from a buffer that is not there");
      expect(n.args.size() == program.buffers[n.buffer].sizes.size(), "a load from ", program.buffers[n.buffer].name,
             " with ", n.args.size(), " indices");
    }
  }
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (BufferId base = program.buffers[i].view_of; base != no_buffer)
      expect(base < i && program.buffers[base].view_of == no_buffer, "a view of a buffer that is none to view");
  verify_steps(program, program.on_state);
  verify_steps(program, program.steps);
}

}  // namespace tenon::loop
