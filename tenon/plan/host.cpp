#include "tenon/plan/host.h"

#include <bit>
#include <cstring>

#include "tenon/rules/op_def.h"

namespace tenon::plan {
namespace {

using loop::Param;

class Params {
 public:
  explicit Params(std::vector<Param>& out) : out_(out) {}

  void integer(SymInt value) { out_.push_back({value, Param::Kind::integer}); }
  void count(size_t n) { integer(SymInt(static_cast<int64_t>(n))); }
  void real(double value) { out_.push_back(Param::real(value)); }
  void real(SymInt value) { out_.push_back({value, Param::Kind::real}); }
  void truth(SymInt value) { out_.push_back({value, Param::Kind::condition}); }
  void string(const std::string& s) {
    count(s.size());
    for (size_t i = 0; i < s.size(); i += 8) {
      int64_t word = 0;
      std::memcpy(&word, s.data() + i, std::min<size_t>(8, s.size() - i));
      integer(word);
    }
  }

  // False where an argument of this type cannot be handed over.
  template <class T>
  bool add(const Type& type, const BasicArg<T>& arg) {
    if (type.optional) count(arg.is_none() ? 0 : 1);
    if (arg.is_none()) return type.optional;
    if (type.list) return list(type, arg);
    auto* truth_value = arg.template get<bool>();
    auto* whole = arg.template get<SymInt>();
    auto* number = arg.template get<double>();
    switch (type.kind) {
      case TypeKind::integer:
        if (whole) integer(*whole);
        else if (truth_value) integer(*truth_value ? 1 : 0);
        else return false;
        return true;
      case TypeKind::boolean:
        if (truth_value) integer(*truth_value ? 1 : 0);
        else if (whole) truth(*whole);
        else return false;
        return true;
      case TypeKind::floating:
      case TypeKind::scalar:
        if (number) real(*number);
        else if (truth_value) real(*truth_value ? 1.0 : 0.0);
        else if (whole && whole->is_int()) real(static_cast<double>(whole->as_int()));
        else if (whole) real(*whole);
        else return false;
        return true;
      case TypeKind::string:
        if (auto* s = arg.template get<std::string>()) string(*s);
        else return false;
        return true;
      case TypeKind::dtype:
        if (auto* dtype = arg.template get<DType>()) integer(static_cast<int64_t>(*dtype));
        else return false;
        return true;
      case TypeKind::tensor:
      case TypeKind::layout:
      case TypeKind::memory_format:
      case TypeKind::device:
      case TypeKind::generator:
      case TypeKind::storage:
      case TypeKind::stream:
      case TypeKind::other: return false;
    }
    unreachable();
  }

 private:
  template <class T>
  bool list(const Type& type, const BasicArg<T>& arg) {
    if (auto* integers = arg.template get<Sizes>()) {
      count(integers->size());
      for (SymInt i : *integers) {
        if (type.kind == TypeKind::floating) real(i.is_int() ? SymInt::real(static_cast<double>(i.as_int())) : i);
        else integer(i);
      }
    } else if (auto* reals = arg.template get<std::vector<double>>()) {
      count(reals->size());
      for (double x : *reals) real(x);
    } else if (auto* truths = arg.template get<std::vector<bool>>()) {
      count(truths->size());
      for (bool b : *truths) integer(b ? 1 : 0);
    } else {
      return false;
    }
    return true;
  }

  std::vector<Param>& out_;
};

bool is_left_out(TypeKind kind) {
  return kind == TypeKind::layout || kind == TypeKind::memory_format || kind == TypeKind::device ||
         kind == TypeKind::generator;
}

// {dim}: the argument dim as the call has it.
template <class T>
std::vector<std::string> errors_of(const Op& op, std::span<const BasicArg<T>> args) {
  std::vector<std::string> out;
  for (const char* sentence : op.def->host.errors) {
    std::string text = op.name() + ": ";
    for (const char* c = sentence; *c; ++c) {
      const char* end = *c == '{' ? std::strchr(c, '}') : nullptr;
      int slot = end ? op.schema.find(std::string_view(c + 1, end)) : -1;
      if (slot < 0) {
        text += *c;
        continue;
      }
      const BasicArg<T>& arg = args[static_cast<size_t>(slot)];
      if (auto* s = arg.template get<std::string>()) text += quoted(*s);
      else if (auto* whole = arg.template get<SymInt>()) append_text(text, *whole);
      else text += "?";
      c = end;
    }
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace

template <class T>
HostArguments<T> host_arguments(const Schema& schema, std::span<const BasicArg<T>> args) {
  HostArguments<T> out;
  Params params(out.params);
  for (size_t i = 0; i < args.size(); ++i) {
    const SchemaArg& slot = schema.args[i];
    if (slot.type.kind == TypeKind::tensor) {
      if (slot.type.list) for_each_tensor(args[i], [&](const T& t) { out.inputs.push_back(t); });
      else if (auto* t = args[i].template get<T>()) out.inputs.push_back(*t);
      else {
        require(args[i].is_none(), schema.name, ": ", slot.name,
                ": expected a tensor, got a number; make a tensor of it");
        out.inputs.emplace_back();
      }
    } else if (!is_left_out(slot.type.kind)) {
      expect(params.add(slot.type, args[i]), schema.name, ": ", slot.name, " cannot be given to a host function");
    }
  }
  return out;
}
template HostArguments<loop::BufferRef> host_arguments(const Schema&, std::span<const loop::StepArg>);
template HostArguments<Tensor> host_arguments(const Schema&, std::span<const CallArg>);

std::vector<std::string> host_errors(const Op& op, std::span<const loop::StepArg> args) { return errors_of(op, args); }
std::vector<std::string> host_errors(const Op& op, std::span<const CallArg> args) { return errors_of(op, args); }

std::string filled_in(const std::string& sentence, std::span<const int64_t> numbers) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < sentence.size(); ++i) {
    bool integer = sentence.compare(i, 2, "{}") == 0, real = sentence.compare(i, 6, "{real}") == 0;
    if ((!integer && !real) || next == numbers.size()) {
      out += sentence[i];
      continue;
    }
    int64_t number = numbers[next++];
    out += real ? text(std::bit_cast<double>(number)) : text(number);
    i += integer ? 1 : 5;
  }
  return out;
}

HostCall host_call(const loop::Program& program, const loop::Call& call) {
  const HostFunction& host = call.op->def->host;
  HostCall out;
  out.function = host.name;
  out.given = host.function;
  auto arguments = host_arguments(call.op->schema, std::span(call.args));
  out.inputs = std::move(arguments.inputs);
  out.params = std::move(arguments.params);
  for (const loop::StepArg& r : call.results)
    for_each_tensor(r, [&](const loop::BufferRef& b) {
      if (b) out.results.push_back(b);
    });
  out.errors = host_errors(*call.op, call.args);
  if (host.per_element) {
    out.extent = tenon::count(program.buffers[out.results.at(0).id].sizes);
    out.grain = elements_per_chunk;
  }
  return out;
}

}  // namespace tenon::plan
