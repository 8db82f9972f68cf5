#include <array>
#include <map>

#include "runtime/verify.h"
#include "tenon/base/text.h"
#include "tenon/io/json.h"
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
    case TENON_STEP_FUSED: return "fused";
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

std::array<uint64_t, TENON_STEP_FUSED + 1> steps_by_kind(const tn_tables& t) {
  std::array<uint64_t, TENON_STEP_FUSED + 1> counts{};
  for (uint64_t i = 0; i < t.header->steps.count; ++i)
    if (t.steps[i].kind < counts.size()) ++counts[t.steps[i].kind];
  return counts;
}

/// How many steps call each function; generated kernels count together.
std::map<std::string, uint64_t> steps_by_function(const Artifact& artifact) {
  const tn_tables& t = artifact.tables();
  std::map<std::string, uint64_t> out;
  auto add = [&](uint32_t function) {
    if (function >= t.header->functions.count) return;  // of a kernel that no step names, which nobody checked
    std::string name(artifact.string(t.functions[function].name));
    ++out[name.starts_with("stage_") ? "generated" : name];
  };
  for (uint64_t i = 0; i < t.header->kernels.count; ++i) add(t.kernels[i].function);
  for (uint64_t i = 0; i < t.header->calls.count; ++i) add(t.calls[i].function);
  return out;
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
  auto counts = steps_by_kind(t);
  std::vector<std::string> kinds;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i]) kinds.push_back(text(kind_name(static_cast<tenon_step_kind>(i)), " ", counts[i]));
  out += text("steps ", h.steps.count, ": ", join(kinds, ", "), "; on state ", h.on_state.count, "\n");
  std::vector<std::string> functions;
  for (const auto& [name, count] : steps_by_function(artifact)) functions.push_back(text(name, " ", count));
  if (!functions.empty()) out += text("functions: ", join(functions, ", "), "\n");
  out += text("weights ", artifact.weights().size(), " bytes, everything else ",
              artifact.bytes().size() - artifact.weights().size(), "\n");
  return out;
}

std::string to_json(const Artifact& artifact) {
  const tn_tables& t = artifact.tables();
  const tenon_header& h = *t.header;
  JsonWriter out;
  auto value = [&](std::string_view name, const tenon_buffer& b) {
    out.begin_object();
    out.field("name", name);
    out.field("type", std::string_view(type_of(artifact, b)));
  };
  out.begin_object();
  out.field("producer", artifact.producer());
  out.field("tables", std::string_view(text(h.abi_major, ".", h.abi_minor)));
  out.field("build_id", std::string_view(artifact.build_id()));
  out.key("targets");
  out.begin_array();
  for (const std::string& name : artifact.target_names()) out.string(name);
  out.end_array();
  out.key("inputs");
  out.begin_array();
  for (uint64_t i = 0; i < h.inputs.count; ++i) {
    value(artifact.string(t.inputs[i].name), t.buffers[t.inputs[i].buffer]);
    out.field("written", t.inputs[i].written != 0);
    out.end_object();
  }
  out.end_array();
  out.key("outputs");
  out.begin_array();
  for (uint64_t i = 0; i < h.outputs.count; ++i) {
    value(artifact.string(t.outputs[i].name), t.buffers[t.outputs[i].buffer]);
    out.end_object();
  }
  out.end_array();
  out.key("state");
  out.begin_array();
  for (uint64_t i = 0; i < h.states.count; ++i) {
    const tenon_state_entry& s = t.states[i];
    out.begin_object();
    out.field("name", artifact.string(s.name));
    out.field("kind", kind_name(static_cast<tenon_state_kind>(s.kind)));
    out.field("frozen", s.buffer == TENON_NONE);
    if (s.buffer != TENON_NONE) out.field("type", std::string_view(type_of(artifact, t.buffers[s.buffer])));
    out.end_object();
  }
  out.end_array();
  out.key("symbols");
  out.begin_array();
  for (uint64_t i = 0; i < h.symbols.count; ++i) {
    out.begin_object();
    out.field("name", artifact.string(t.symbols[i].name));
    out.field("lo", t.symbols[i].lo);
    out.field("hi", t.symbols[i].hi);
    out.end_object();
  }
  out.end_array();
  out.key("steps");
  out.begin_object();
  auto counts = steps_by_kind(t);
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i]) out.field(kind_name(static_cast<tenon_step_kind>(i)), static_cast<int64_t>(counts[i]));
  out.end_object();
  out.key("functions");
  out.begin_object();
  for (const auto& [name, count] : steps_by_function(artifact)) out.field(name, static_cast<int64_t>(count));
  out.end_object();
  out.field("on_state_steps", static_cast<int64_t>(h.on_state.count));
  out.field("weights_bytes", static_cast<int64_t>(artifact.weights().size()));
  out.field("other_bytes", static_cast<int64_t>(artifact.bytes().size() - artifact.weights().size()));
  out.end_object();
  return out.take() + "\n";
}

}  // namespace tenon::package
