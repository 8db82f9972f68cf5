#include "tenon/graph/convention.h"

namespace tenon {

std::string public_name(const InputMeaning& meaning) {
  if (auto* p = std::get_if<input::Parameter>(&meaning)) return p->names.front();
  if (auto* b = std::get_if<input::Buffer>(&meaning)) return b->names.front();
  if (auto* c = std::get_if<input::Constant>(&meaning)) return c->name;
  if (auto* u = std::get_if<input::User>(&meaning)) return u->name;
  if (auto* t = std::get_if<input::Tangent>(&meaning)) return text("tangent_output_", t->output);
  if (auto* s = std::get_if<input::Saved>(&meaning)) return s->name;
  if (auto* s = std::get_if<input::SavedSize>(&meaning)) return s->symbol;
  return "rng_state";
}

std::string to_text(const InputMeaning& meaning) {
  if (auto* p = std::get_if<input::Parameter>(&meaning)) return "parameter " + join(p->names, ", ");
  if (auto* b = std::get_if<input::Buffer>(&meaning))
    return (b->persistent ? "buffer " : "non-persistent buffer ") + join(b->names, ", ");
  if (auto* c = std::get_if<input::Constant>(&meaning)) return "constant " + c->name;
  if (auto* u = std::get_if<input::User>(&meaning)) return text("user input ", u->leaf, " ", u->name);
  if (auto* t = std::get_if<input::Tangent>(&meaning)) return text("tangent of output ", t->output);
  if (auto* s = std::get_if<input::Saved>(&meaning)) return "saved " + s->name;
  if (auto* s = std::get_if<input::SavedSize>(&meaning)) return "saved size " + s->symbol;
  return "rng state";
}

std::string to_text(const OutputMeaning& meaning, const CallingConvention& convention) {
  if (auto* u = std::get_if<output::User>(&meaning)) {
    std::string out = text("user output ", u->leaf);
    for (const Alias& a : convention.aliases)
      if (a.leaf == u->leaf)
        out += text(a.whole ? ", is " : ", aliases ",
                    a.of == Alias::input ? to_text(convention.inputs[a.index]) : text("user output ", a.index));
    return out;
  }
  if (auto* u = std::get_if<output::Updated>(&meaning)) return "updated " + to_text(convention.inputs[u->input]);
  if (auto* v = std::get_if<output::Viewed>(&meaning)) return "viewed " + to_text(convention.inputs[v->input]);
  if (auto* g = std::get_if<output::Gradient>(&meaning)) return "gradient of " + to_text(convention.inputs[g->input]);
  if (auto* s = std::get_if<output::SavedSize>(&meaning)) return "saved size " + s->symbol;
  return "saved " + std::get<output::Saved>(meaning).name;
}

bool is_state(const InputMeaning& meaning) {
  return std::holds_alternative<input::Parameter>(meaning) || std::holds_alternative<input::Buffer>(meaning) ||
         std::holds_alternative<input::Constant>(meaning);
}

}  // namespace tenon
