#include <tenon/operator_table.h>

#include <filesystem>

#include "tests/wrong_calls/rows.h"

namespace tenon_test {
namespace {

std::string data(const std::string& name) { return std::string(TENON_TEST_DATA) + "/pt2/torch-2.15/" + name + ".pt2"; }
std::string nowhere() { return "/nowhere/at/all.pt2"; }
std::string no_program() { return __FILE__; }

template <class T>
T moved_from(T object) {
  T elsewhere = std::move(object);
  return object;  // NOLINT: that is what is tried
}

const tenon::Module& counter() {
  static const tenon::Module module = load(data("i_counter"));
  return module;
}
const CompiledModule& compiled() {
  static const CompiledModule module(compile(load_program(data("i_counter"))));
  return module;
}
UnflattenedModule modules() { return unflatten(counter().program()); }
const tenon::ExportedProgram& product() {
  static const tenon::ExportedProgram program = [] {
    Tensor w = ones({3, 2}).requires_grad_();
    return export_program([=](const std::vector<Tensor>& in) { return std::vector<Tensor>{matmul(in.at(0), w)}; },
                          {x()}, {.parameters = {{"w", w}}});
  }();
  return program;
}
TrainingStep training() { return make_training_step(product(), "mse", "sgd,lr=0.1", {.compile = false}); }

}  // namespace

std::vector<Row> file_rows() {
  auto partial = [] { return (std::filesystem::temp_directory_path() / "tenon_wrong_call.npz").string(); };
  return {
      {"load_tensors",
       {[] { load_tensors(nowhere()); }, [] { load_tensors(no_program()); }, [] { load_tensors("/"); },
        [] { load_tensors(""); }},
       "",
       ErrorKind::file},
      {"save_tensors",
       {[] {
          save_tensors({{"a", x()}}, "/nowhere/at/all.npz");
        },
        [] { save_tensors({}, ""); }},
       "",
       ErrorKind::file},
      {"save_tensors",
       {[=] {
          save_tensors({{"a", none}}, partial());
        },
        [=] {
          save_tensors({{"a", x().to(bf16)}}, partial());
        }}},
      {"load_program",
       {[] { load_program(nowhere()); }, [] { load_program(no_program()); }, [] { load_program("/"); },
        [] { load_program(""); }, [] { load_program(data("i_counter"), {.model = "other", .progress = {}}); }},
       "",
       ErrorKind::file},
      {"load", {[] { load(nowhere()); }, [] { load(no_program()); }, [] { load(""); }}, "", ErrorKind::file},
      {"save",
       {[] { save(counter().program(), "/nowhere/at/all.pt2"); }, [] { save(counter(), "/nowhere/at/all.pt2"); },
        [] { save(counter(), ""); }, [] { save(counter(), "/"); }},
       "",
       ErrorKind::file},
      {"save", {[] { save(tenon::ExportedProgram(), "a.pt2"); }, [] { save(moved_from(counter()), "a.pt2"); }}},
      {"load_operators",
       {[] { load_operators("/nowhere/at/all.so"); }, [] { load_operators(no_program()); }, [] { load_operators(""); }},
       "",
       ErrorKind::file},
      {"register_operators", {[] { register_operators(tenon_operator_table{}); }}},
      {"load_compiled",
       {[] { load_compiled(nowhere()); }, [] { load_compiled(no_program()); }, [] { load_compiled(""); }},
       "",
       ErrorKind::file},
      {"CompiledModule::CompiledModule",
       {[] { CompiledModule{nowhere()}; }, [] { CompiledModule{std::vector<std::byte>{}}; },
        [] { CompiledModule{std::vector<std::byte>(4096)}; }},
       "",
       ErrorKind::file},
      {"compile",
       {[] { compile(counter().program(), "/nowhere/at/all.so"); }, [] { compile(counter().program(), ""); }},
       "",
       ErrorKind::file},
      {"compile",
       {[] { compile(tenon::ExportedProgram(), "a.so"); }, [] { compile(tenon::ExportedProgram()); },
        [] { compile(counter().program(), CompileOptions{.targets = {"pentium"}}); },
        [] { compile(counter().program(), CompileOptions{.weights = "int4"}); }}},
  };
}

std::vector<Row> program_rows() {
  using Program = tenon::ExportedProgram;
  auto twice = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in.at(0) * 2}; };
  return {
      {"ExportedProgram::input_names", {[] { Program().input_names(); }}},
      {"ExportedProgram::parameter_names", {[] { Program().parameter_names(); }}},
      {"ExportedProgram::buffer_names", {[] { Program().buffer_names(); }}},
      {"ExportedProgram::torch_version", {[] { Program().torch_version(); }}},
      {"ExportedProgram::missing_operators", {[] { Program().missing_operators(); }}},
      {"differentiate",
       {[] { differentiate(Program()); }, [] { differentiate(counter().program(), {.of = 99}); },
        [] { differentiate(counter().program(), {.wrt = "nobody"}); },
        [] { differentiate(counter().program(), {.wrt = ""}); }}},
      {"show",
       {[] { show(Program()); }, [] { show(counter().program(), {.after = "lunch"}); },
        [] { show(counter().program(), {.after = "joint", .of = 99}); },
        [] { show(counter().program(), {.after = "joint", .wrt = "nobody"}); }}},
      {"export_program",
       {[] { export_program(nullptr, {x()}); }, [=] { export_program(twice, {none}); },
        [=] {
          export_program(twice, {x()}, {.input_names = {"a", "b"}});
        },
        [=] {
          export_program(twice, {x()}, {.parameters = {{"w", none}}});
        },
        [] { export_program([](const std::vector<Tensor>&) { return std::vector<Tensor>{none}; }, {x()}); },
        [] {
          export_program(
              [](const std::vector<Tensor>& in) { return std::vector<Tensor>{scalar(in[0].sum().item<float>())}; },
              {x()});
        }}},
      {"run_decompositions",
       {[] { run_decompositions(Program()); }, [] { run_decompositions(counter().program(), {.dialect = "slang"}); },
        [] { run_decompositions(counter().program(), {.keep = {"nobody"}}); }}},
      never("ModuleScope::takes", "without a program that is being made it does nothing"),
      never("ModuleScope::gives", "without a program that is being made it does nothing"),
      never("ModuleScope::ModuleScope", "without a program that is being made it does nothing"),
      {"Module::Module", {[] { tenon::Module{Program()}; }}},
      {"Module::program", {[] { moved_from(counter()).program(); }}},
      {"Module::names", {[] { moved_from(counter()).names(); }}},
      {"Module::get", {[] { counter().get("nobody"); }, [] { moved_from(counter()).get("steps"); }}},
      {"Module::set",
       {[] { tenon::Module(counter()).set("nobody", x()); }, [] { tenon::Module(counter()).set("steps", none); },
        [] { tenon::Module(counter()).set("steps", x()); }, [] { moved_from(counter()).set("steps", x()); }}},
      {"Module::call",
       {[] { counter().call({}); }, [] { counter().call({1}); },
        [] {
          counter().call({x(), x(), x()});
        },
        [] {
          counter().call({x()}, {{"nobody", 1}});
        },
        [] { moved_from(counter()).call({}); }}},
      {"Module::run", {[] { counter().run({Value()}); }, [] { moved_from(counter()).run({}); }}},
      {"Module::operator()",
       {[] { counter()(); }, [] { counter()(none); }, [] { counter()(x(), x()); }, [] { counter()(1, 2, 3); },
        [] { counter()(1, 2, 3, 4); }, [] { counter()(1, 2, 3, 4, 5); }}},
      {"CompiledModule::input_names", {[] { moved_from(compiled()).input_names(); }}},
      {"CompiledModule::target", {[] { moved_from(compiled()).target(); }}},
      {"CompiledModule::names", {[] { moved_from(compiled()).names(); }}},
      {"CompiledModule::get", {[] { compiled().get("nobody"); }, [] { moved_from(compiled()).get("steps"); }}},
      {"CompiledModule::set",
       {[] { CompiledModule(compiled()).set("nobody", x()); }, [] { CompiledModule(compiled()).set("steps", none); },
        [] { moved_from(compiled()).set("steps", x()); }}},
      {"CompiledModule::call",
       {[] { compiled().call({}); }, [] { compiled().call({1}); },
        [] {
          compiled().call({x()}, {{"nobody", 1}});
        },
        [] { moved_from(compiled()).call({}); }}},
      {"CompiledModule::run", {[] { compiled().run({Value()}); }, [] { moved_from(compiled()).run({}); }}},
      {"CompiledModule::operator()", {[] { compiled()(); }, [] { compiled()(none); }, [] { compiled()(1, 2, 3); }}},
      {"set_threads", {[] { set_threads(0); }, [] { set_threads(-1); }}},
  };
}

std::vector<Row> dim_rows() {
  return {
      {"Dim::Dim",
       {[] { Dim(""); }, [] { Dim("2n"); }, [] { Dim("n", {.min = 5, .max = 2}); }, [] { Dim("n", {.min = -1}); }}},
      {"Dim::automatic", {[] { Dim::automatic({.min = 5, .max = 2}); }}},
      {"Dim::dynamic", {[] { Dim::dynamic({.min = 5, .max = 2}); }}},
      {"Dim::fixed", {[] { Dim::fixed(-1); }}},
      {"Dim::operator*", {[] { Dim("n") * 0; }, [] { Dim("n") * huge* huge; }, [] { Dim::automatic() * 2; }}},
      {"Dim::operator+", {[] { (Dim("n") + huge) + huge; }, [] { Dim::fixed() + 1; }}},
      {"Dim::operator-", {[] { Dim("n") - 1; }, [] { Dim::dynamic() - 1; }}},
      {"export_program", {[] {
         auto same = [](const std::vector<Tensor>& in) { return in; };
         export_program(same, {x()}, {.input_names = {"x"}, .dynamic_shapes = {{"y", {{0, Dim("n")}}}}});
       }}},
  };
}

std::vector<Row> unflatten_rows() {
  auto same = [](const std::vector<Value>& in) { return in; };
  return {
      {"unflatten", {[] { unflatten(tenon::ExportedProgram()); }}},
      {"UnflattenedModule::modules", {[] { UnflattenedModule().modules(); }}},
      {"UnflattenedModule::class_name", {[] { modules().class_name("nobody"); }}},
      {"UnflattenedModule::names", {[] { modules().names("nobody"); }}},
      {"UnflattenedModule::has_signature", {[] { modules().has_signature("nobody"); }}},
      {"UnflattenedModule::get", {[] { modules().get("nobody"); }, [] { UnflattenedModule().get("steps"); }}},
      {"UnflattenedModule::set",
       {[] { modules().set("nobody", x()); }, [] { modules().set("steps", none); },
        [] { modules().set("steps", x()); }}},
      {"UnflattenedModule::call",
       {[] { modules().call({}); },
        [] {
          modules().call({x()}, {{"nobody", 1}});
        },
        [] { UnflattenedModule().call({}); }}},
      {"UnflattenedModule::operator()", {[] { modules()(none); }, [] { modules()(1, 2); }}},
      {"UnflattenedModule::call_module",
       {[] { modules().call_module("nobody", {}); },
        [] {
          modules().call_module("", {Value::dictionary({{"a", 1}})});
        }}},
      {"UnflattenedModule::replace",
       {[=] { modules().replace("nobody", same); }, [=] { modules().replace("", same); },
        [] { modules().replace("nobody", nullptr); }}},
      {"UnflattenedModule::restore", {[] { modules().restore("nobody"); }}},
  };
}

std::vector<Row> training_rows() {
  return {
      never("Loss::Loss", "make_training_step looks at it"),
      never("Optimizer::Optimizer", "make_training_step looks at it"),
      {"make_training_step",
       {[] { make_training_step(tenon::ExportedProgram(), "mse", "sgd"); },
        [] { make_training_step(product(), "wishes", "sgd"); }, [] { make_training_step(product(), "mse", "luck"); },
        [] { make_training_step(product(), "mse", "sgd", {.schedule = "later"}); },
        [] { make_training_step(product(), "mse", "sgd", {.accumulate = 0}); },
        [] { make_training_step(product(), "mse", "sgd", {.freeze = {"*"}}); },
        [] { make_training_step(product(), "mse", "sgd", {.precision = "f7"}); },
        [] { make_training_step(product(), "mse", "sgd", {.memory_budget = 2}); }}},
      {"TrainingStep::run",
       {[] { training().run({}); },
        [] {
          training().run({x(), none});
        }}},
      {"TrainingStep::operator()",
       {[] { training()(x()); },
        [] {
          training()(x(), zeros({5, 5}));
        }}},
      {"TrainingStep::updates", {[] { moved_from(training()).updates(); }}},
      {"TrainingStep::trained", {[] { moved_from(training()).trained(); }}},
      {"TrainingStep::compiled", {[] { moved_from(training()).compiled(); }}},
      {"TrainingStep::program", {[] { moved_from(training()).program(); }}},
      {"TrainingStep::get", {[] { training().get("nobody"); }, [] { moved_from(training()).get("w"); }}},
      {"TrainingStep::save",
       {[] { training().save("/nowhere/at/all.state"); }, [] { training().save(""); }},
       "",
       ErrorKind::file},
      {"TrainingStep::load",
       {[] { training().load("/nowhere/at/all.state"); }, [] { training().load(no_program()); },
        [] { training().load(""); }},
       "",
       ErrorKind::file},
      {"TrainingStep::compile",
       {[] { training().compile("/nowhere/at/all.so"); }, [] { training().compile(""); }},
       "",
       ErrorKind::file},
  };
}
}  // namespace tenon_test
