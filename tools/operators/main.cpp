// Writes the operators of the public interface: tenon_operators HEADERS FOLDER COUNT gives HEADERS/operators.h and
// HEADERS/tensor_methods.h, FOLDER/operators_N.cpp for N below COUNT, FOLDER/calls.cpp, in which calls as users write
// them are compiled, and FOLDER/operator_calls.cpp, by which a test calls each with arguments of its choice.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "tenon/base/text.h"
#include "tools/operators/signature.h"

namespace tenon {
namespace {

constexpr const char* made = "// Made by the build from the schemas of the registry (tools/operators).\n";

std::string parameters(const Signature& s, bool of_method, bool with_defaults) {
  std::vector<std::string> out;
  std::vector<const Parameter*> shown = s.shown();
  for (size_t i = of_method; i < shown.size(); ++i) {
    const Parameter& p = *shown[i];
    std::string each = p.type + (p.type.back() == '&' ? "" : " ") + (p.type.back() == '&' ? " " : "") + p.name;
    if (with_defaults && !p.default_value.empty()) each += " = " + p.default_value;
    out.push_back(each);
  }
  return join(out, ", ");
}

std::string functions_header(const std::vector<Signature>& all) {
  std::string out = text(
      made,
      "// Operators as functions, under PyTorch's names: tenon::exp(x), tenon::conv2d(x, weight, bias, 2, 1). Those "
      "that end in _ write\n// their first argument. A wrong call is an Error that names operator and argument.\n",
      "#pragma once\n#include <tenon/tensor.h>\n\n#include <tuple>\n#include <vector>\n\n",
      "namespace tenon::TENON_INLINE v0 {\n");
  for (const Signature& s : all)
    append_text(out, text("TENON_PUBLIC ", s.result, " ", s.name, "(", parameters(s, false, true), ");\n"));
  return out + "}  // namespace tenon::TENON_INLINEv0\n";
}

std::string methods_header(const std::vector<Signature>& all) {
  std::string out = text(made, "// Within class Tensor: the operators whose first argument is a tensor called self.\n");
  for (const Signature& s : all)
    if (s.method) out += text(s.result, " ", s.name, "(", parameters(s, true, true), ") const;\n");
  return out;
}

void append_definitions(std::string& out, const Signature& s) {
  out += text(s.result, " ", s.name, "(", parameters(s, false, false),
              ") {\n  static const tenon::Op& op = operator_named(\"", s.op->name(), "\");\n  Call call(op);\n");
  for (const Parameter& p : s.parameters)
    out += p.shown ? text("  call.give(", p.name, ");\n") : "  call.leave_out();\n";
  out += text("  return call.", s.getter, "(", s.writes ? s.shown()[0]->name : "", ");\n}\n");
  if (!s.method) return;
  std::vector<std::string> given{"*this"};
  std::vector<const Parameter*> shown = s.shown();
  for (size_t i = 1; i < shown.size(); ++i) given.push_back(shown[i]->name);
  out += text(s.result, " Tensor::", s.name, "(", parameters(s, true, false), ") const { return v0::", s.name, "(",
              join(given, ", "), "); }\n");
}

// An argument as a user writes it, for each type.
std::string sample(const std::string& type) {
  if (type == "const Tensor&") return "x";
  if (type == "TensorList") return "{x, x}";
  if (type == "IntList" || type == "IntItems") return "{1, 2}";
  if (type == "FloatList") return "{1.0, 2.0}";
  if (type == "Flag" || type == "std::optional<Flag>") return "true";
  if (type == "DType" || type == "std::optional<DType>") return "tenon::f32";
  if (type == "std::string_view" || type == "std::optional<std::string_view>") return "\"text\"";
  if (type == "std::int64_t" || type == "std::optional<std::int64_t>") return "1";
  if (type == "Size" || type == "std::optional<Size>") return "x.size(0)";
  return "0.5";
}

// Each function with its required arguments alone, and with all of them: compiled, never called.
std::string calls(const std::vector<Signature>& all) {
  std::string out =
      text(made, "#include <tenon/tenon.h>\n\n#include <cstddef>\n\nvoid calls_of_every_operator(tenon::Tensor x) {\n");
  for (const Signature& s : all) {
    std::vector<std::string> required, every;
    for (const Parameter* p : s.shown()) {
      if (p->default_value.empty()) required.push_back(sample(p->type));
      every.push_back(sample(p->type));
    }
    for (const std::vector<std::string>& arguments : {required, every})
      out += text("  static_cast<void>(tenon::", s.name, "(", join(arguments, ", "), "));\n");
    if (s.method) {
      required.erase(required.begin());
      out += text("  static_cast<void>(x.", s.name, "(", join(required, ", "), "));\n");
    }
  }
  return out + text("}\n\nextern const std::size_t count_of_operators = ", all.size(), ";\n");
}

// The value of a parameter among the arguments of tests/wrong_calls/operator_calls.h.
std::string argument(const std::string& type, size_t number) {
  if (type == "const Tensor&") return text("a.tensor(", number, ")");
  if (type == "TensorList") return "a.list";
  if (type == "IntList" || type == "IntItems") return "a.integers";
  if (type == "FloatList") return "a.reals";
  if (type == "Flag" || type == "std::optional<Flag>") return "tenon::Flag(a.truth)";
  if (type == "DType" || type == "std::optional<DType>") return "a.dtype";
  if (type == "std::string_view" || type == "std::optional<std::string_view>") return "a.text";
  if (type == "Size" || type == "std::optional<Size>") return "tenon::Size(a.integer)";
  if (type == "std::int64_t" || type == "std::optional<std::int64_t>") return "a.integer";
  return "a.real";
}

std::string table_of_calls(const std::vector<Signature>& all) {
  std::string out = text(made, "#include \"tests/wrong_calls/operator_calls.h\"\n\nnamespace tenon_test {\n",
                         "static const OperatorCall calls[] = {\n");
  for (const Signature& s : all) {
    std::vector<std::string> arguments;
    bool needs_tensor = false;
    size_t number = 0;
    for (size_t i = 0; i < s.parameters.size(); ++i) {
      const Parameter& p = s.parameters[i];
      if (!p.shown) continue;
      arguments.push_back(argument(p.type, number++));
      needs_tensor = needs_tensor || (p.type == "const Tensor&" && !s.op->schema.args[i].type.optional);
    }
    out += text("  {\"", s.name, "(", parameters(s, false, false), ")\", ", needs_tensor,
                ", [](const Arguments& a) { static_cast<void>(a), static_cast<void>(tenon::", s.name, "(",
                join(arguments, ", "), ")); }},\n");
  }
  return out + "};\nstd::span<const OperatorCall> operator_calls() { return calls; }\n}  // namespace tenon_test\n";
}

// A file that says the same is left alone: what depends on it is not built again.
void write(const std::filesystem::path& path, const std::string& content) {
  std::filesystem::create_directories(path.parent_path());
  std::ifstream before(path, std::ios::binary);
  if (before && std::string(std::istreambuf_iterator<char>(before), {}) == content) return;
  std::ofstream out(path, std::ios::binary);
  out << content;
  require(out.good(), "cannot write ", path.string());
}

void run(const std::filesystem::path& headers, const std::filesystem::path& folder, size_t count) {
  std::vector<Signature> all = signatures();
  write(headers / "operators.h", functions_header(all));
  write(headers / "tensor_methods.h", methods_header(all));
  for (size_t file = 0; file < count; ++file) {
    std::string out = text(made,
                           "#include \"tenon/api/call.h\"\n\nnamespace tenon::v0 {\n\nusing detail::Call;\nusing "
                           "detail::operator_named;\n\n");
    for (size_t i = file * all.size() / count; i < (file + 1) * all.size() / count; ++i)
      append_definitions(out, all[i]);
    write(folder / text("operators_", file, ".cpp"), out + "\n}  // namespace tenon::v0\n");
  }
  write(folder / "calls.cpp", calls(all));
  write(folder / "operator_calls.cpp", table_of_calls(all));
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  if (argc != 4) return std::cerr << "usage: tenon_operators HEADERS FOLDER COUNT\n", 2;
  try {
    tenon::run(argv[1], argv[2], std::stoul(argv[3]));
  } catch (const std::exception& e) { return std::cerr << "tenon_operators: " << e.what() << "\n", 1; }
}
