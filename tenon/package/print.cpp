#include <array>

#include "runtime/verify.h"
#include "tenon/base/text.h"
#include "tenon/package/artifact.h"

namespace tenon::package {

namespace {

/// An expression with its symbols by name; constants are numbers, the rest is written in postfix order.
std::string to_text(const Artifact& artifact, uint32_t expr) {
  const tn_tables& t = artifact.tables();
  tenon_list list = t.exprs[expr].words;
  int64_t word = t.words[list.first];
  if (list.count == 1 && (word & 0xff) == TENON_OP_CONST) return text(word >> 8);
  if (list.count == 1 && (word & 0xff) == TENON_OP_SYMBOL)
    return std::string(artifact.string(t.symbols[word >> 8].name));
  if (list.count == 3 && (t.words[list.first + 2] & 0xff) == TENON_OP_MUL && (word & 0xff) == TENON_OP_CONST &&
      (t.words[list.first + 1] & 0xff) == TENON_OP_SYMBOL)
    return text(word >> 8, "*", artifact.string(t.symbols[t.words[list.first + 1] >> 8].name));
  return "?";
}

std::string type_of(const Artifact& artifact, const tenon_buffer& b) {
  std::string out = text(tenon_dtype_name(b.dtype), "[");
  for (uint32_t d = 0; d < b.rank; ++d) out += (d ? ", " : "") + to_text(artifact, b.sizes + d);
  return out + "]";
}

std::string_view kind_name(tenon_step_kind kind) {
  switch (kind) {
    case TENON_STEP_KERNEL: return "kernel";
    case TENON_STEP_CALL: return "call";
    case TENON_STEP_BIND: return "bind";
    case TENON_STEP_CHECK: return "check";
    case TENON_STEP_CONTROL: return "control";
    case TENON_STEP_PLAN: return "plan";
    case TENON_STEP_COPY: return "copy";
    case TENON_STEP_STORE: return "store";
    case TENON_STEP_MAKE: return "make";
  }
  return "?";
}

std::string_view kind_name(tenon_state_kind kind) {
  switch (kind) {
    case TENON_STATE_PARAMETER: return "parameter";
    case TENON_STATE_BUFFER: return "buffer";
    case TENON_STATE_CONSTANT: return "constant";
    case TENON_STATE_OPTIMIZER: return "optimizer";
    case TENON_STATE_RANDOM: return "random";
  }
  return "?";
}

}  // namespace

std::string to_text(const Artifact& artifact) {
  const tn_tables& t = artifact.tables();
  const tenon_header& h = *t.header;
  std::string out =
      text("artifact for ", join(artifact.target_names(), ", "), ", made by ", quoted(artifact.producer()), ", tables ",
           h.abi_major, ".", h.abi_minor, ", build ", artifact.build_id(), "\n");
  for (uint64_t i = 0; i < h.inputs.count; ++i)
    out += text("input ", quoted(artifact.string(t.inputs[i].name)), ": ",
                type_of(artifact, t.buffers[t.inputs[i].buffer]), t.inputs[i].written ? " (written)" : "", "\n");
  for (uint64_t i = 0; i < h.outputs.count; ++i)
    out += text("output ", quoted(artifact.string(t.outputs[i].name)), ": ",
                type_of(artifact, t.buffers[t.outputs[i].buffer]), "\n");
  for (uint64_t i = 0; i < h.states.count; ++i) {
    const tenon_state_entry& s = t.states[i];
    out += text(kind_name(static_cast<tenon_state_kind>(s.kind)), " ", quoted(artifact.string(s.name)), ": ",
                s.buffer == TENON_NONE ? "frozen" : type_of(artifact, t.buffers[s.buffer]), "\n");
  }
  for (uint64_t i = 0; i < h.symbols.count; ++i)
    out += text("symbol ", artifact.string(t.symbols[i].name), " in [", t.symbols[i].lo, ", ", t.symbols[i].hi, "]\n");
  std::array<uint64_t, TENON_STEP_MAKE + 1> counts{};
  for (uint64_t i = 0; i < h.steps.count; ++i)
    if (t.steps[i].kind < counts.size()) ++counts[t.steps[i].kind];
  std::vector<std::string> kinds;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i]) kinds.push_back(text(kind_name(static_cast<tenon_step_kind>(i)), " ", counts[i]));
  out += text("steps ", h.steps.count, ": ", join(kinds, ", "), "; on state ", h.on_state.count, "\n");
  out += text("weights ", artifact.weights().size(), " bytes, everything else ",
              artifact.bytes().size() - artifact.weights().size(), "\n");
  return out;
}

}  // namespace tenon::package
