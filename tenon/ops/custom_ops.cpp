#include "tenon/ops/custom_ops.h"

#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/include/tenon/operator_table.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/custom_gradient.h"
#include "tenon/ops/custom_results.h"
#include "tenon/ops/printing.h"
#include "tenon/ops/writing.h"
#include "tenon/rules/registration.h"

namespace tenon {
namespace {

/// One operator of the user, and what its rules read. An operator that writes to arguments has a functional form, which
/// has the kernel and gives what is written as further results.
struct Custom {
  CustomOperator given;
  Schema schema;
  CustomResults results;
  CustomGradient gradient;
  std::vector<size_t> written;  // arguments
  std::string functional_name, functional_schema;
  std::string differentiable;  // arguments, for GradFormula
  bool has_kernel = true;
};

struct Table {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<const Custom>, std::less<>> by_name;  // of the operators that have kernels
  std::map<std::string, const Custom*, std::less<>> rules;                    // and of all
};
Table& table() {
  static Table& instance = *new Table;  // never destroyed, as the registry
  return instance;
}

const Custom& custom(const Op& op) {
  Table& all = table();
  std::lock_guard lock(all.mutex);
  auto found = all.rules.find(op.name());
  expect(found != all.rules.end(), op.name(), " is no operator of the user");
  return *found->second;
}

Metas given_metas(MetaCall& m) {
  const Custom& own = custom(m.op);
  Metas out;
  for (TensorMeta& meta : own.results.metas(m)) out.values.emplace_back(std::move(meta));
  for (size_t i : own.written) {
    if (!m.given(i)) out.values.emplace_back();
    else out.values.emplace_back(make_meta(m.meta(i).dtype, m.meta(i).sizes));
  }
  return out;
}

Grads given_gradients(Vjp& v) { return custom(v.op).gradient.evaluate(v); }

Results computed_and_written(Build& b) {
  const Custom& own = custom(b.op);
  Results all = call_op(*registry().find(own.functional_name), CallArgs(b.args.begin(), b.args.end()));
  size_t returned = own.schema.returns.size();
  for (size_t k = 0; k < own.written.size(); ++k)
    if (b.given(own.written[k])) write(b[own.written[k]], all[returned + k]);
  all.values.resize(returned);
  return all;
}

Schema schema_of(const std::string& text) {
  try {
    require(text.find("::") != text.npos, "expected a namespace, as in mylib::op");
    return parse_schema(text);
  } catch (const Error&) { throw; } catch (const std::exception&) {
    fail("expected a schema such as mylib::op(Tensor x) -> Tensor");
  }
}

void require_handed_over(const Schema& schema) {
  require(schema.space() != "aten" && schema.space() != "prims" && schema.space() != "tenon" &&
              schema.space() != "higher_order",
          "the namespace ", quoted(schema.space()), " is not the user's; choose another");
  for (const SchemaArg& arg : schema.args) switch (arg.type.kind) {
      case TypeKind::tensor:
        require(!arg.writes || !arg.type.list, arg.name, ": lists of tensors cannot be written to");
        break;
      case TypeKind::scalar:
      case TypeKind::integer:
      case TypeKind::floating:
      case TypeKind::boolean:
      case TypeKind::string:
      case TypeKind::dtype:
      case TypeKind::layout:
      case TypeKind::memory_format:
      case TypeKind::device:
      case TypeKind::generator: break;
      case TypeKind::storage:
      case TypeKind::stream:
      case TypeKind::other: fail(arg.name, ": arguments of the type ", arg.type.text, " are not supported");
    }
  for (const SchemaArg& result : schema.returns)
    require(result.type.kind == TypeKind::tensor && !result.type.list && !result.type.optional && result.alias.empty(),
            "results must be new tensors, got ", quoted(result.type.text));
}

std::unique_ptr<Custom> understood(CustomOperator given) {
  auto own = std::make_unique<Custom>();
  own->schema = schema_of(given.schema);
  const Schema& schema = own->schema;
  require_handed_over(schema);
  require(given.kernel != nullptr, "it has no kernel");
  for (size_t i = 0; i < schema.args.size(); ++i)
    if (schema.args[i].writes) own->written.push_back(i);
  try {
    own->results = CustomResults(schema, given.results);
  } catch (const Error& error) { fail("results ", quoted(given.results), ": ", error.what()); }
  try {
    own->gradient = CustomGradient(schema, given.gradient);
  } catch (const Error& error) { fail("gradient ", quoted(given.gradient), ": ", error.what()); }
  require(own->written.empty() || !own->gradient, "an operator that writes to its arguments cannot have a gradient");
  own->differentiable = own->gradient.of();
  given.effects = given.effects || (schema.returns.empty() && own->written.empty());
  if (!own->written.empty()) {
    Schema pure = schema;
    pure.name = text(schema.space(), "::", schema.base(), ".",
                     schema.overload() == "default" ? "" : text(schema.overload(), "_"), "functional");
    for (SchemaArg& arg : pure.args) {
      arg.writes = false;
      arg.alias.clear();
    }
    for (size_t k = 0; k < own->written.size(); ++k) {
      SchemaArg result;
      result.type = {.kind = TypeKind::tensor, .text = "Tensor"};
      pure.returns.push_back(std::move(result));
    }
    own->functional_name = pure.name;
    own->functional_schema = to_text(pure);
  }
  own->given = std::move(given);
  return own;
}

HostFunction host_of(const Custom& own) {
  HostFunction host;
  host.name = own.schema.name.c_str();
  for (const std::string& sentence : own.given.errors) host.errors.push_back(sentence.c_str());
  host.function = own.given.kernel;
  return host;
}

void put(Registry& ops, const Custom& own) {
  OpDef def;
  def.schema = own.given.schema.c_str();
  def.meta = given_metas;
  def.host = host_of(own);
  def.traits.effects = own.given.effects;
  if (own.gradient) def.vjp.emplace_back(own.differentiable.c_str(), given_gradients);
  if (own.written.empty()) {
    ops.add(std::move(def));
    return;
  }
  OpDef writing;
  writing.schema = def.schema;
  writing.kind = OpKind::composite;
  writing.traits.may_alias = true;
  writing.traits.effects = own.given.effects;
  writing.decompose = computed_and_written;
  def.schema = own.functional_schema.c_str();
  ops.add(std::move(writing));
  ops.add(std::move(def));
}

}  // namespace

void register_custom_operators(std::vector<CustomOperator> operators, std::string_view from) {
  std::vector<std::unique_ptr<Custom>> made;
  std::map<std::string, size_t> names;
  for (size_t i = 0; i < operators.size(); ++i) {
    std::string subject = text(from, ": operator ", i, " ", quoted(operators[i].schema, 200), ": ");
    try {
      made.push_back(understood(std::move(operators[i])));
      const std::string& name = made.back()->schema.name;
      require(!registry().find(name), "there is an operator ", name, " already");
      require(names.emplace(name, i).second, name, " is there twice");
    } catch (const Error& error) { fail(subject, error.what()); }
  }
  for (const std::unique_ptr<Custom>& own : made)
    for (const auto& [name, wanted] : own->gradient.calls()) {
      const Op* op = registry().find(name);
      auto beside = names.find(name);
      require(op || beside != names.end(), from, ": operator ", own->schema.name, ": gradient ",
              quoted(own->given.gradient), ": there is no operator ", quoted(name));
      size_t given = (op ? op->schema : made[beside->second]->schema).returns.size();
      require(given >= wanted, from, ": operator ", own->schema.name, ": gradient ", quoted(own->given.gradient), ": ",
              name, " gives ", given, " results, expected ", wanted);
    }
  std::vector<const Custom*> kept;
  Table& all = table();
  {
    std::lock_guard lock(all.mutex);
    for (std::unique_ptr<Custom>& own : made) {
      kept.push_back(own.get());
      all.rules[own->schema.name] = own.get();
      if (!own->functional_name.empty()) all.rules[own->functional_name] = own.get();
      all.by_name[own->schema.name] = std::move(own);
    }
  }
  for (const Custom* own : kept) put(open_registry(), *own);
}

void register_custom_operators(const tenon_operator_table& given, std::string_view from) {
  require(given.version == TENON_OPERATOR_TABLE_VERSION, from, ": its table of operators has version ", given.version,
          ", this Tenon reads version ", TENON_OPERATOR_TABLE_VERSION, "; build it with this Tenon's operator_table.h");
  require(given.operator_size >= sizeof(tenon_operator) && given.operator_size <= 4096 && given.operators &&
              given.count > 0 && given.count <= 65536,
          from, ": its table of operators holds ", given.count, " entries of ", given.operator_size,
          " bytes, expected at least one of at least ", sizeof(tenon_operator));
  std::vector<CustomOperator> operators;
  const char* at = reinterpret_cast<const char*>(given.operators);
  for (uint64_t i = 0; i < given.count; ++i, at += given.operator_size) {
    const auto& entry = *reinterpret_cast<const tenon_operator*>(at);
    auto word = [](const char* text) { return std::string(text ? text : ""); };
    require((entry.flags & ~uint64_t{TENON_OPERATOR_EFFECTS}) == 0, from, ": operator ", i, " ",
            quoted(word(entry.schema), 200), ": unknown flags ", entry.flags);
    CustomOperator one{.schema = word(entry.schema),
                       .results = word(entry.results),
                       .gradient = word(entry.gradient),
                       .kernel = entry.kernel,
                       .errors = {},
                       .effects = (entry.flags & TENON_OPERATOR_EFFECTS) != 0};
    for (const char* const* error = entry.errors; error && *error; ++error) one.errors.emplace_back(*error);
    operators.push_back(std::move(one));
  }
  register_custom_operators(std::move(operators), from);
}

const Op* writing_form(const Op& functional) {
  Table& all = table();
  std::lock_guard lock(all.mutex);
  auto found = all.rules.find(functional.name());
  if (found == all.rules.end() || found->second->functional_name != functional.name()) return nullptr;
  return registry().find(found->second->schema.name);
}

tenon_host_function find_custom_kernel(std::string_view name) {
  Table& all = table();
  std::lock_guard lock(all.mutex);
  auto found = all.by_name.find(name);
  if (found != all.by_name.end()) return found->second->given.kernel;
  const HostFunction& print = print_values.op().def->host;
  return name == print.name ? print.function : nullptr;
}

std::vector<std::pair<const char*, tenon_host_function>> custom_kernels() {
  Table& all = table();
  std::lock_guard lock(all.mutex);
  std::vector<std::pair<const char*, tenon_host_function>> out;
  for (const auto& [name, own] : all.by_name) out.emplace_back(name.c_str(), own->given.kernel);
  const HostFunction& print = print_values.op().def->host;
  out.emplace_back(print.name, print.function);
  return out;
}

}  // namespace tenon
