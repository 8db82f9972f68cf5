#include "tenon/export/serde/load.h"

#include <unordered_map>

#include "tenon/export/serde/archive.h"
#include "tenon/export/serde/samples.h"
#include "tenon/export/serde/signature_reader.h"
#include "tenon/export/serde/upgrade.h"
#include "tenon/sym/parse.h"

namespace tenon {
namespace serde {
namespace {

void read_version(ExportedProgram& program, Json root) {
  if (auto version = root.given("torch_version")) program.torch_version = version->as_string();
  Json schema = root.at("schema_version");
  program.schema_major = schema.at("major").as_int();
  program.schema_minor = schema.at("minor").as_int();
}

void read_ranges(ExportedProgram& program, ReadContext& context, Json ranges) {
  for (JsonMember member : ranges.members()) {
    sym::Range range;
    if (auto low = member.value.given("min_val")) range.lo = low->as_int();
    if (auto high = member.value.given("max_val")) range.hi = high->as_int();
    member.value.require(!range.is_empty(), "the range of ", quoted(member.key), " is empty: from ", range.lo, " to ",
                         range.hi);
    program.ranges.emplace_back(member.key, range);
    context.budget.take_weight(member.key.size(), "ranges of symbols");
    try {
      SymInt key = sym::parse(member.key);
      context.budget.take_weight(sym::weight(key), "ranges of symbols");
      context.shapes.constrain(key, range);
    } catch (const Error& error) { member.value.fail(error.what()); }
  }
}

// A size of an input that the file gives no range is any size, as PyTorch takes it.
void bound_sizes(GraphBody& graph) {
  for (const Arg& input : graph.inputs) {
    auto* v = input.get<Value>();
    if (!v || !*v || graph.info(*v).type != ValueType::tensor) continue;
    for (SymInt size : graph.info(*v).meta.sizes)
      for (SymInt symbol : sym::symbols_of(size))
        if (!graph.shapes.ranges.find(symbol)) graph.shapes.ranges.set(symbol, {0, sym::Range::infinity});
  }
}

void read_dialect(ExportedProgram& program, Json verifiers) {
  for (Json verifier : verifiers.items()) {
    std::string_view name = verifier.as_string();
    verifier.require(name == "ATEN" || name == "TRAINING", "expected the dialect ATEN or TRAINING, found ",
                     quoted(name), "; export the model with torch.export alone");
  }
  if (verifiers.size() > 0) program.dialect = verifiers[0].as_string();
}

// Guards are kept as text; parsing them here makes sure that none of them is anything but a condition on inputs.
std::string_view read_guard(Json guard, ReadContext& context) {
  context.budget.take_weight(guard.as_string().size(), "guards");
  try {
    sym::parse_guard(guard.as_string());
  } catch (const Error& error) { guard.fail(error.what()); }
  return guard.as_string();
}

ExportedProgram read_root(Json root, ReadContext& context) {
  ExportedProgram program;
  read_version(program, root);
  if (auto verifiers = root.given("verifiers")) read_dialect(program, *verifiers);
  if (auto ranges = root.given("range_constraints")) read_ranges(program, context, *ranges);
  if (auto guards = root.given("guards_code"))
    for (Json guard : guards->items()) program.guards.emplace_back(read_guard(guard, context));
  if (auto opset = root.given("opset_version"))
    for (JsonMember member : opset->members()) program.opset_version.emplace_back(member.key, member.value.as_int());

  Json module = root.at("graph_module");
  program.graph = read_graph(module.at("graph"), context);
  bound_sizes(program.graph.body());
  Names names = names_of(program.graph.body());
  program.signature = read_signature(module.at("signature"), program.graph.body(), names);
  program.module_calls = read_module_calls(module.at("module_call_graph"), names);
  if (auto metadata = module.given("metadata"))
    for (JsonMember member : metadata->members()) program.metadata.emplace_back(member.key, member.value.as_string());
  if (auto tuples = module.given("treespec_namedtuple_fields"))
    for (JsonMember member : tuples->members()) {
      auto& fields = program.namedtuple_fields[std::string(member.key)];
      for (Json field : member.value.at("field_names").items()) fields.emplace_back(field.as_string());
    }
  program.hints = context.hints;
  return program;
}

}  // namespace
}  // namespace serde

using namespace serde;

ExportedProgram read_program(std::string_view json, const std::string& subject, const OpTable& ops) {
  Budget budget(subject, json.size());
  JsonDocument document = read_program_json(json, subject, true, budget);
  ReadContext context{.ops = ops, .budget = budget};
  return read_root(document.root(), context);
}

namespace {

// Files with pickled weights say only there which tensors are parameters and require gradients: what PyTorch 2.4 wrote
// of its inputs is mostly false.
void adopt_weights(ExportedProgram& program) {
  std::unordered_map<std::string_view, NamedTensor*> weights;
  for (NamedTensor& weight : program.state) weights.emplace(weight.name, &weight);
  for (const InputSpec& spec : program.signature.inputs) {
    auto found = spec.kind == InputKind::parameter ? weights.find(spec.target) : weights.end();
    if (found == weights.end()) continue;
    found->second->is_parameter = true;
    if (const Value* input = spec.arg.get<Value>())
      program.graph->info(*input).meta.requires_grad = found->second->tensor.meta().requires_grad;
  }
}

void read_state(ExportedProgram& program, const std::shared_ptr<const Archive>& archive, ReadContext& context) {
  if (archive->container() == Container::raw) {
    std::vector<const ZipEntry*> unchecked;
    program.state = read_payloads(archive, PayloadFolder::weights, context, unchecked, program.opaque);
    program.constants = read_payloads(archive, PayloadFolder::constants, context, unchecked, program.opaque);
    program.check_payloads = [archive, unchecked] {
      for (const ZipEntry* entry : unchecked) archive->zip().check(*entry);
    };
    return;
  }
  std::vector<std::function<void()>> checks;
  program.state = read_pickled_payloads(archive, PayloadFolder::weights, checks, program.opaque);
  program.constants = read_pickled_payloads(archive, PayloadFolder::constants, checks, program.opaque);
  program.check_payloads = [checks] {
    for (const auto& check : checks) check();
  };
  adopt_weights(program);
}

ExportedProgram read_file(const std::string& path, const OpTable& ops, const LoadOptions& options) {
  auto archive = Archive::open(path, options.model);
  std::string entry = archive->program_entry();
  JsonDocument document = read_program_json(archive->content(entry), text(path, ": ", entry),
                                            archive->container() == Container::flat, archive->budget());
  ReadContext context{.ops = ops, .budget = archive->budget()};
  ExportedProgram program = read_root(document.root(), context);
  read_state(program, archive, context);
  program.samples = sample_reader(archive, program);
  std::string_view extra = archive->extra_folder();
  for (const std::string& name : archive->names_in(extra)) {
    archive->budget().take_bytes(archive->at(text(extra, name)).size, "extra files");
    program.extra_files.emplace_back(name, archive->content(text(extra, name)));
  }
  verify(program);
  return program;
}

}  // namespace

ExportedProgram load_exported(const std::string& path, const OpTable& ops, const LoadOptions& options) {
  try {
    return read_file(path, ops, options);
  } catch (const Error& error) {
    std::string_view message = error.what();
    if (message.find(path) != message.npos) throw;
    fail(path, ": ", message);  // the verifier and arithmetic on sizes know no file
  }
}

}  // namespace tenon
