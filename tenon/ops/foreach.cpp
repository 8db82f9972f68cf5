// _foreach_X: X of each tensor of a list, as optimizers call it. What X is stands in its own block.
#include <deque>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/linalg_norms.h"
#include "tenon/ops/views.h"
#include "tenon/ops/writing.h"

namespace tenon {
namespace {

// The item of a list that the call of one element takes; other arguments are taken by every element.
CallArg item_of(const CallArg& arg, const Type& type, size_t i) {
  if (!type.list) return arg;
  if (auto* tensors = arg.get<std::vector<Tensor>>()) return tensors->at(i);
  if (auto* integers = arg.get<Sizes>()) return (*integers)[i];
  if (auto* reals = arg.get<std::vector<double>>()) return reals->at(i);
  if (auto* truths = arg.get<std::vector<bool>>()) return static_cast<bool>(truths->at(i));
  if (auto* items = arg.get<CallArg::Items>()) return items->at(i);
  fail("expected a list, got ", describe(arg));
}

size_t length_of(const CallArg& arg) {
  if (auto* tensors = arg.get<std::vector<Tensor>>()) return tensors->size();
  if (auto* integers = arg.get<Sizes>()) return integers->size();
  if (auto* reals = arg.get<std::vector<double>>()) return reals->size();
  if (auto* truths = arg.get<std::vector<bool>>()) return truths->size();
  auto* items = arg.get<CallArg::Items>();
  return items ? items->size() : 0;
}

// add of _foreach_add_: what takes tensors, or the overload for numbers.
Tensor element_call(std::string_view name, std::vector<Given> given) {
  for (const char* overload : {".Tensor", ".Tensor_Tensor", ""})
    if (const Op* op = registry().find(text("aten::", name, overload))) {
      CallArgs args = tenon::bind(*op, std::span<Given>(given));
      return call_op(registry().for_numbers(*op, args), args);
    }
  fail("there is no operator ", name);
}

size_t count_of(const ArgsView& call) {
  size_t count = 0;
  bool known = false;
  for (size_t k = 0; k < call.args.size(); ++k) {
    if (!call.op.schema.args[k].type.list) continue;
    size_t length = length_of(call.args[k]);
    call.require(!known || length == count, "lists of ", count, " and of ", length, " items");
    count = length;
    known = true;
  }
  return count;
}

Tensor element(const ArgsView& call, size_t i) {
  const Schema& schema = call.op.schema;
  std::string_view name = schema.base();
  name.remove_prefix(std::string_view("_foreach_").size());
  if (ends_with(name, "_")) name.remove_suffix(1);
  bool scalar = starts_with(schema.overload(), "Scalar");
  // Of a number, the larger is what clamps.
  if (scalar && name == "maximum") name = "clamp_min";
  if (scalar && name == "minimum") name = "clamp_max";
  std::vector<Given> given;
  for (size_t k = 0; k < call.args.size(); ++k) {
    const std::string& slot = schema.args[k].name;
    CallArg arg = item_of(call.args[k], schema.args[k].type, i);
    bool factor = schema.find("tensor2") >= 0 && k == 3;  // of addcmul and addcdiv
    if (factor) given.emplace_back("value", arg);
    else if (slot == "alpha" || slot == "memory_format") given.emplace_back(slot.c_str(), arg);
    else if (slot != "non_blocking") given.emplace_back(arg);
  }
  return element_call(name, std::move(given));
}

Results computed(Build& b) {
  std::vector<Tensor> out;
  for (size_t i = 0, count = count_of(b); i < count; ++i) out.push_back(element(b, i));
  return {{CallArg(std::move(out))}};
}

Results written(Build& b) {
  std::vector<Tensor> self = b.tensors("self");
  for (size_t i = 0, count = count_of(b); i < count; ++i) write(self[i], element(b, i));
  return {};
}

// Factors in a tensor are numbers that only a run tells: the products are spelled out.
Tensor with_factor(const ArgsView& b, size_t i) {
  Tensor factor = select(b["scalars"], 0, static_cast<int64_t>(i));
  Tensor a = b.tensors("tensor1")[i], c = b.tensors("tensor2")[i];
  bool divides = b.op.schema.base().find("addcdiv") != std::string_view::npos;
  return add(b.tensors("self")[i], mul(factor, divides ? Tensor(div(a, c)) : Tensor(mul(a, c))));
}

Results norms(Build& b) {
  std::vector<Tensor> out;
  for (const Tensor& x : b.tensors("self"))
    out.push_back(linalg_vector_norm(x, b.arg("ord"), CallArg(), false, kw("dtype", b.arg("dtype"))));
  return {{CallArg(std::move(out))}};
}

}  // namespace

void register_foreach(Registry& ops) {
  static std::deque<std::string> texts;  // schemas live as long as the registry
  auto add_form = [&](std::string schema, DecomposeRule rule, bool writes) {
    texts.push_back(std::move(schema));
    ops.add({.schema = texts.back().c_str(),
             .kind = OpKind::composite,
             .traits = {.may_alias = writes},
             .decompose = rule});
  };
  auto plain = [&](const std::string& name, const std::string& overload, const std::string& more) {
    add_form(text("_foreach_", name, overload, "(Tensor[] self", more, ") -> Tensor[]"), computed, false);
  };
  auto in_place = [&](const std::string& name, const std::string& overload, const std::string& more) {
    add_form(text("_foreach_", name, "_", overload, "(Tensor(a!)[] self", more, ") -> ()"), written, true);
  };
  auto both = [&](const std::string& name, const std::string& overload, const std::string& more) {
    plain(name, overload, more);
    in_place(name, overload, more);
  };
  for (const char* name :
       {"abs",     "acos", "asin",   "atan", "ceil",  "cos",   "cosh", "erf",   "erfc",       "exp",   "expm1",
        "floor",   "frac", "lgamma", "log",  "log10", "log1p", "log2", "neg",   "reciprocal", "round", "rsqrt",
        "sigmoid", "sign", "sin",    "sinh", "sqrt",  "tan",   "tanh", "trunc", "zero"})
    both(name, "", "");
  for (const char* name : {"add", "sub", "mul", "div", "clamp_min", "clamp_max", "minimum", "maximum"}) {
    bool scaled = std::string_view(name) == "add" || std::string_view(name) == "sub";
    both(name, ".Scalar", ", Scalar scalar");
    both(name, ".List", text(", Tensor[] other", scaled ? ", *, Scalar alpha=1" : ""));
    both(name, ".ScalarList", ", Scalar[] scalars");
  }
  both("add", ".Tensor", ", Tensor other, *, Scalar alpha=1");
  both("mul", ".Tensor", ", Tensor other");
  both("div", ".Tensor", ", Tensor other");
  both("pow", ".List", ", Tensor[] exponent");
  both("pow", ".Scalar", ", Scalar exponent");
  both("pow", ".ScalarList", ", Scalar[] exponent");
  add_form("_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]", computed, false);
  both("lerp", ".List", ", Tensor[] tensors1, Tensor[] weights");
  both("lerp", ".Scalar", ", Tensor[] tensors1, Scalar weight");
  both("lerp", ".ScalarList", ", Tensor[] tensors1, Scalar[] weight");
  for (const char* name : {"addcmul", "addcdiv"}) {
    both(name, ".Scalar", ", Tensor[] tensor1, Tensor[] tensor2, Scalar value=1");
    both(name, ".ScalarList", ", Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars");
    add_form(
        text("_foreach_", name,
             ".Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> Tensor[]"),
        [](Build& b) -> Results {
          std::vector<Tensor> out;
          for (size_t i = 0, count = count_of(b); i < count; ++i) out.push_back(with_factor(b, i));
          return {{CallArg(std::move(out))}};
        },
        false);
    add_form(
        text("_foreach_", name,
             "_.Tensor(Tensor(a!)[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> ()"),
        [](Build& b) -> Results {
          std::vector<Tensor> self = b.tensors("self");
          for (size_t i = 0, count = count_of(b); i < count; ++i) write(self[i], with_factor(b, i));
          return {};
        },
        true);
  }
  both("copy", "", ", Tensor[] src, bool non_blocking=False");
  plain("mm", "", ", Tensor[] mat2");
  plain("max", "", "");
  plain("clone", "", ", *, MemoryFormat? memory_format=None");
  add_form("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]", norms, false);
}

}  // namespace tenon
