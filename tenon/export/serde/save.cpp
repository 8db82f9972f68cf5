#include "tenon/export/serde/save.h"

#include <map>

#include "tenon/export/serde/codes.h"
#include "tenon/export/serde/graph_writer.h"
#include "tenon/export/serde/samples.h"
#include "tenon/export/serde/tree_spec.h"
#include "tenon/io/zip.h"

namespace tenon {
namespace serde {
namespace {

constexpr int64_t written_major = 8, written_minor = 20;

// {"<kind>": {"arg": {"name": ...}, "<target_key>": target}}
void write_spec(JsonWriter& out, std::string_view kind, std::string_view value, std::string_view target_key,
                std::string_view target) {
  out.begin_object();
  out.key(kind);
  out.begin_object();
  out.key("arg");
  out.begin_object();
  out.field("name", value);
  out.end_object();
  if (!target_key.empty()) out.field(target_key, target);
}

void end_spec(JsonWriter& out) {
  out.end_object();
  out.end_object();
}

void write_input_spec(WriteContext& context, const GraphBody& graph, const InputSpec& spec) {
  JsonWriter& out = context.out;
  auto value_name = [&] { return graph.info(*spec.arg.get<Value>()).name; };
  switch (spec.kind) {
    case InputKind::user_input:
      out.begin_object();
      if (spec.arg.is<Value>()) {
        out.key("user_input");
        out.begin_object();
        out.key("arg");
        write_argument(context, graph, spec.arg);
      } else {
        out.key("constant_input");
        out.begin_object();
        out.field("name", spec.name);
        out.key("value");
        write_argument(context, graph, spec.arg);
      }
      break;
    case InputKind::parameter: write_spec(out, "parameter", value_name(), "parameter_name", spec.target); break;
    case InputKind::buffer:
      write_spec(out, "buffer", value_name(), "buffer_name", spec.target);
      out.field("persistent", spec.persistent);
      break;
    case InputKind::constant_tensor:
      write_spec(out, "tensor_constant", value_name(), "tensor_constant_name", spec.target);
      break;
    case InputKind::custom_object: {
      const ValueInfo& info = graph.info(*spec.arg.get<Value>());
      out.begin_object();
      out.key("custom_obj");
      out.begin_object();
      out.key("arg");
      out.begin_object();
      out.field("name", info.name);
      out.field("class_fqn", info.class_name);
      out.end_object();
      out.field("custom_obj_name", spec.target);
      break;
    }
    case InputKind::token: write_spec(out, "token", value_name(), "", ""); break;
  }
  end_spec(out);
}

void write_output_spec(WriteContext& context, const GraphBody& graph, const OutputSpec& spec) {
  JsonWriter& out = context.out;
  auto value_name = [&] { return graph.info(*spec.arg.get<Value>()).name; };
  switch (spec.kind) {
    case OutputKind::user_output:
      out.begin_object();
      out.key("user_output");
      out.begin_object();
      out.key("arg");
      write_argument(context, graph, spec.arg);
      break;
    case OutputKind::loss_output: write_spec(out, "loss_output", value_name(), "", ""); break;
    case OutputKind::buffer_mutation:
      write_spec(out, "buffer_mutation", value_name(), "buffer_name", spec.target);
      break;
    case OutputKind::parameter_mutation:
      write_spec(out, "parameter_mutation", value_name(), "parameter_name", spec.target);
      break;
    case OutputKind::user_input_mutation:
      write_spec(out, "user_input_mutation", value_name(), "user_input_name", spec.target);
      break;
    case OutputKind::gradient_to_parameter:
      write_spec(out, "gradient_to_parameter", value_name(), "parameter_name", spec.target);
      break;
    case OutputKind::gradient_to_user_input:
      write_spec(out, "gradient_to_user_input", value_name(), "user_input_name", spec.target);
      break;
    case OutputKind::token: write_spec(out, "token", value_name(), "", ""); break;
  }
  end_spec(out);
}

void write_signature(WriteContext& context, const ExportedProgram& program) {
  JsonWriter& out = context.out;
  out.begin_object();
  out.key("input_specs");
  out.begin_array();
  for (const InputSpec& spec : program.signature.inputs) write_input_spec(context, program.graph.body(), spec);
  out.end_array();
  out.key("output_specs");
  out.begin_array();
  for (const OutputSpec& spec : program.signature.outputs) write_output_spec(context, program.graph.body(), spec);
  out.end_array();
  out.end_object();
}

void write_module_calls(WriteContext& context, const ExportedProgram& program) {
  JsonWriter& out = context.out;
  auto write_args = [&](std::string_view key, const Args& args) {
    out.key(key);
    out.begin_array();
    for (const Arg& arg : args) write_argument(context, program.graph.body(), arg);
    out.end_array();
  };
  out.begin_array();
  for (const ModuleCallEntry& entry : program.module_calls) {
    out.begin_object();
    out.field("fqn", entry.fqn);
    out.key("signature");
    if (entry.signature) {
      out.begin_object();
      write_args("inputs", entry.signature->inputs);
      write_args("outputs", entry.signature->outputs);
      out.field("in_spec", to_tree_spec(entry.signature->in));
      out.field("out_spec", to_tree_spec(entry.signature->out));
      out.key("forward_arg_names");
      if (entry.signature->forward_arg_names) {
        out.begin_array();
        for (const std::string& name : *entry.signature->forward_arg_names) out.string(name);
        out.end_array();
      } else {
        out.null();
      }
      out.end_object();
    } else {
      out.null();
    }
    out.end_object();
  }
  out.end_array();
}

void write_ranges(JsonWriter& out, const ExportedProgram& program) {
  out.begin_object();
  for (const auto& [key, range] : program.ranges) {
    out.key(key);
    out.begin_object();
    out.key("min_val");
    if (range.has_lo()) out.integer(range.lo);
    else out.null();
    out.key("max_val");
    if (range.has_hi()) out.integer(range.hi);
    else out.null();
    out.end_object();
  }
  out.end_object();
}

void write_texts(JsonWriter& out, const std::vector<std::pair<std::string, std::string>>& pairs) {
  out.begin_object();
  for (const auto& [key, value] : pairs) out.field(key, value);
  out.end_object();
}

/// Adds entries under the root folder and keeps what the serialization id is made of.
class ArchiveWriter {
 public:
  ArchiveWriter(const std::string& path) : zip_(path) {
    std::string_view base = path;
    if (size_t slash = base.rfind('/'); slash != std::string_view::npos) base.remove_prefix(slash + 1);
    if (size_t dot = base.rfind('.'); dot != std::string_view::npos && dot > 0) base = base.substr(0, dot);
    root_ = bad_zip_name(base) || base == "." ? "archive/" : text(base, "/");
  }
  template <class Content>
  void add(std::string_view name, const Content& content) {
    uint32_t crc = zip_.add(text(root_, name), content);
    for (char c : name) names_ = (names_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    contents_ = (contents_ ^ crc) * 0x100000001b3u;
  }
  void finish() {
    add("archive_format", std::string_view("pt2"));
    add("archive_version", std::string_view("0"));
    add(".data/version", std::string_view("6\n"));
    add("byteorder", std::string_view("little"));
    add(".data/serialization_id", digits(names_) + digits(contents_));
    zip_.commit();
  }

 private:
  static std::string digits(uint64_t number) {
    std::string out = text(number);
    return std::string(20 - out.size(), '0') + out;
  }
  ZipWriter zip_;
  std::string root_;
  uint64_t names_ = 0xcbf29ce484222325u, contents_ = 0xcbf29ce484222325u;
};

// One file per storage and dtype, in order of first appearance; the config goes group by group, as PyTorch writes it.
void write_payloads(ArchiveWriter& archive, const std::vector<NamedTensor>& tensors,
                    const std::vector<OpaquePayload>& opaque, std::string_view kind, std::string_view prefix) {
  std::map<std::pair<const Storage*, DType>, size_t> group_of;
  std::vector<std::vector<const NamedTensor*>> groups;
  for (const NamedTensor& t : tensors) {
    bool bytes = t.tensor.storage()->size() > 0 && !t.absent;
    const Storage* storage = bytes ? t.tensor.storage().get() : nullptr;  // those without bytes share one file
    auto [group, fresh] = group_of.try_emplace({storage, t.tensor.dtype()}, groups.size());
    if (fresh) groups.emplace_back();
    groups[group->second].push_back(&t);
  }
  JsonWriter out;
  std::map<std::string, int64_t> no_hints;
  WriteContext context{out, no_hints};
  out.begin_object();
  out.key("config");
  out.begin_object();
  std::map<std::string, size_t> counts;  // of files by the prefix of their names
  auto write_entry = [&](std::string_view name, std::string_view file, bool is_parameter, const TensorMeta* meta,
                         bool pickled) {
    out.key(name);
    out.begin_object();
    out.field("path_name", file);
    out.field("is_param", is_parameter);
    out.field("use_pickle", pickled);
    out.key("tensor_meta");
    if (meta) write_tensor_meta(context, *meta);
    else out.null();
    out.end_object();
  };
  for (const OpaquePayload& payload : opaque) {
    if (payload.is_weight != (kind == "weights")) continue;
    std::string stem = payload.file.substr(0, payload.file.find_last_not_of("0123456789") + 1);
    std::string file = text(stem, counts[stem]++);
    archive.add(text("data/", kind, "/", file), payload.bytes);
    write_entry(payload.name, file, payload.is_parameter, payload.meta ? &*payload.meta : nullptr, true);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    std::string file = text(prefix, counts[std::string(prefix)]++);
    const Storage& storage = *groups[i][0]->tensor.storage();
    archive.add(text("data/", kind, "/", file), std::span(storage.data(), groups[i][0]->absent ? 0 : storage.size()));
    for (const NamedTensor* t : groups[i]) write_entry(t->name, file, t->is_parameter, &t->tensor.meta(), false);
  }
  out.end_object();
  out.end_object();
  archive.add(text("data/", kind, "/model_", kind, "_config.json"), out.take());
}

std::string samples_of(const ExportedProgram& program, const std::function<void(const std::string&)>& warn) {
  if (!program.samples) return {};
  try {
    auto samples = program.samples();
    return samples ? write_samples(*samples) : std::string();
  } catch (const OpaqueSamples& error) {
    std::span<const std::byte> bytes = error.samples.file;
    if (!(error.samples.tree == program.in_tree())) {
      if (warn) warn(text("the sample inputs are left out: ", error.what()));
      return {};
    }
    if (warn)
      warn(
          "the sample inputs hold objects of a class of the user's and are copied as they are; PyTorch will execute "
          "them");
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  } catch (const Error& error) {
    if (warn) warn(text("the sample inputs are left out: ", error.what()));
    return {};
  }
}

// Results that nobody reads may have no names; PyTorch makes these up when it writes them.
bool lacks_names(const GraphBody& graph) {
  for (const Node& node : graph.nodes) {
    bool found = false;
    for_each_result(node, [&](Value v) { found = found || graph.info(v).name.empty(); });
    for (const Arg& arg : node.args)
      if (auto* within = arg.get<Subgraph>()) found = found || lacks_names(*within->body);
    if (found) return true;
  }
  return false;
}

void name_unread(GraphBody& graph) {
  for (Node& node : graph.nodes) {
    size_t i = 0;
    for_each_result(node, [&](Value v) {
      if (graph.info(v).name.empty()) graph.info(v).name = unique_name(graph, text(node.origin.name, "_unused_", i));
      ++i;
    });
    for (Arg& arg : node.args)
      if (auto* within = arg.get<Subgraph>(); within && lacks_names(*within->body)) {
        auto body = std::make_shared<GraphBody>(*within->body);
        name_unread(*body);
        arg = Subgraph{within->name, std::move(body)};
      }
  }
}

}  // namespace
}  // namespace serde

using namespace serde;

std::string to_json(const ExportedProgram& program) {
  if (lacks_names(program.graph.body())) {
    ExportedProgram named = program.copy();
    name_unread(named.graph.body());
    return to_json(named);
  }
  JsonWriter out;
  WriteContext context{out, program.hints};
  out.begin_object();
  out.key("graph_module");
  out.begin_object();
  out.key("graph");
  write_graph(context, program.graph.body());
  out.key("signature");
  write_signature(context, program);
  out.key("module_call_graph");
  write_module_calls(context, program);
  out.key("metadata");
  write_texts(out, program.metadata);
  out.key("treespec_namedtuple_fields");
  out.begin_object();
  for (const auto& [type, fields] : program.namedtuple_fields) {
    out.key(type);
    out.begin_object();
    out.key("field_names");
    out.begin_array();
    for (const std::string& field : fields) out.string(field);
    out.end_array();
    out.end_object();
  }
  out.end_object();
  out.end_object();
  out.key("opset_version");
  out.begin_object();
  for (const auto& [space, version] : program.opset_version) out.field(space, version);
  if (program.opset_version.empty()) out.field("aten", int64_t{10});
  out.end_object();
  out.key("range_constraints");
  write_ranges(out, program);
  out.key("schema_version");
  out.begin_object();
  out.field("major", written_major);
  out.field("minor", written_minor);
  out.end_object();
  out.key("verifiers");
  out.begin_array();
  out.string(program.dialect);
  out.end_array();
  out.field("torch_version", program.torch_version.empty() ? "2.15.0" : program.torch_version);
  out.key("guards_code");
  out.begin_array();
  for (const std::string& guard : program.guards) out.string(guard);
  out.end_array();
  out.end_object();
  return out.take();
}

void save_exported(const ExportedProgram& program, const std::string& path,
                   const std::function<void(const std::string& warning)>& warn) {
  program.check_payloads();
  std::string json = to_json(program);
  std::string samples = samples_of(program, warn);
  for (const OpaquePayload& payload : program.opaque)
    if (warn)
      warn(text(quoted(payload.name), " is a pickle, written as it is: PyTorch will execute what it holds when it ",
                "loads the file"));
  ArchiveWriter archive(path);
  write_payloads(archive, program.state, program.opaque, "weights", "weight_");
  write_payloads(archive, program.constants, program.opaque, "constants", "tensor_");
  archive.add("models/model.json", json);
  archive.add("data/sample_inputs/model.pt", samples);
  for (const auto& [name, content] : program.extra_files) archive.add("extra/" + name, content);
  archive.finish();
}

}  // namespace tenon
