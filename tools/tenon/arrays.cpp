#include "tools/tenon/arrays.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "tenon/sym/evaluate.h"
#include "tenon/tensor/half.h"
#include "tenon/tensor/ones.h"
#include "tools/tenon/files.h"

namespace tenon::tool {
namespace {

using Type = loop::Input::Type;

std::string describe(const ExpectedInput& input) {
  if (input.is_object) return "an object";
  switch (input.type) {
    case Type::tensor: return text(input.meta);
    case Type::integer: return "an integer";
    case Type::floating: return "a float";
    case Type::boolean: return "a boolean";
    case Type::constant: return "a constant";
  }
  unreachable();
}

std::string expected(const std::vector<ExpectedInput>& inputs) {
  if (inputs.empty()) return "the program has no inputs";
  std::vector<std::string> names;
  for (const ExpectedInput& input : inputs) names.push_back(text(shown(input.name), ": ", describe(input)));
  return text("the inputs are ", join(names, ", "), " (or arr_0, arr_1, ... in this order)");
}

std::optional<size_t> position(std::string_view key) {
  if (!starts_with(key, "arr_")) return std::nullopt;
  key.remove_prefix(4);
  size_t number = 0;
  auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  bool plain = error == std::errc() && end == key.data() + key.size() && (key.size() == 1 || key[0] != '0');
  return plain ? std::optional(number) : std::nullopt;
}

Tensor to_tensor(const Array& array) {
  TensorMeta meta;
  auto dtype = dtype_of(array.dtype);
  expect(dtype.has_value(), "a dtype of .npy that tensors lack: ", array.dtype);
  meta.dtype = *dtype;
  for (int64_t size : array.sizes) meta.sizes.push_back(size);
  for (int64_t stride : array.strides) meta.strides.push_back(stride);
  return Tensor(std::move(meta), std::make_shared<Storage>(array.bytes, array.owner));
}

int64_t elements(const Tensor& t) { return t.numel().as_int(); }

Tensor to_bfloat(const Tensor& given) {
  Tensor from = contiguous_copy(given);
  Tensor to = Tensor::empty(DType::bf16, from.sizes());
  const float* read = from.data<float>();
  auto* write = to.mutable_data<uint16_t>();
  for (int64_t i = 0; i < elements(from); ++i) write[i] = float_to_bfloat(read[i]);
  return to;
}

Tensor to_float(const Tensor& given) {
  Tensor from = contiguous_copy(given);
  Tensor to = Tensor::empty(DType::f32, from.sizes());
  const auto* read = from.data<uint16_t>();
  auto* write = to.mutable_data<float>();
  for (int64_t i = 0; i < elements(from); ++i) write[i] = bfloat_to_float(read[i]);
  return to;
}

// Symbols that stand as a number that was given or as a size of an input that was, or that such a size can be solved
// for.
sym::Bindings bound_symbols(const std::vector<ExpectedInput>& inputs, const std::vector<CallArg>& arguments) {
  sym::Bindings bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor* given = arguments[i].get<Tensor>();
    if (!given) continue;
    const ExpectedInput& input = inputs[i];
    if (input.type == Type::integer && given->rank() == 0 && !is_floating(given->dtype()) && input.number.is_symbol())
      bindings.set(input.number, scalar_integer(*given));
    if (input.type != Type::tensor || input.is_object) continue;
    for (size_t d = 0; d < input.meta.rank() && d < given->rank(); ++d) {
      std::vector<SymInt> symbols = sym::symbols_of(input.meta.sizes[d]);
      if (symbols.size() != 1 || bindings.find(symbols[0])) continue;
      auto solved = sym::solve(input.meta.sizes[d], given->sizes()[d], symbols[0]);
      if (solved && solved->value.is_int()) bindings.set(symbols[0], solved->value.as_int());
    }
  }
  return bindings;
}

// None where its size is known only when the program has run: ones are made then.
CallArg ones(const TensorMeta& wanted, const sym::Bindings& bindings) {
  Sizes sizes;
  for (SymInt size : wanted.sizes) {
    for (SymInt symbol : sym::symbols_of(size))
      if (!bindings.find(symbol)) return {};
    sizes.push_back(sym::evaluate(size, bindings));
  }
  return ones_tensor(wanted.dtype, sizes);
}

// Which array goes where, by input position.
std::vector<const Array*> assign(const std::vector<ExpectedInput>& inputs, const std::vector<NamedArray>& arrays,
                                 const std::string& file) {
  std::vector<const Array*> found(inputs.size());
  std::map<std::string_view, size_t> by_name;
  for (size_t i = 0; i < inputs.size(); ++i) by_name.emplace(inputs[i].name, i);
  auto only_tensor = [&]() -> size_t {  // an .npy has no name
    std::vector<size_t> tensors;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].type != Type::constant) tensors.push_back(i);
    require(tensors.size() == 1, file, ": an .npy file holds one array, and the program takes ", tensors.size(),
            "; give an .npz file: ", expected(inputs));
    return tensors[0];
  };
  for (const NamedArray& named : arrays) {
    size_t at = 0;
    if (named.name.empty()) at = only_tensor();
    else if (auto it = by_name.find(named.name); it != by_name.end()) at = it->second;
    else if (auto number = position(named.name); number && *number < inputs.size()) at = *number;
    else fail(file, ": no input is called ", quoted(named.name), "; ", expected(inputs));
    require(!found[at], file, ": the input ", shown(inputs[at].name), " is given twice, by name and by position");
    found[at] = &named.array;
  }
  return found;
}

std::string number_text(double value, const char* format) {
  if (std::isnan(value)) return "nan";  // without the sign that it may have
  char out[40];
  std::snprintf(out, sizeof out, format, value);
  return out;
}

std::string element_text(const Tensor& dense, int64_t i) {
  switch (dense.dtype()) {
    case DType::boolean: return dense.data<uint8_t>()[i] ? "True" : "False";
    case DType::u8: return text(dense.data<uint8_t>()[i]);
    case DType::i8: return text(static_cast<int>(dense.data<int8_t>()[i]));
    case DType::i16: return text(dense.data<int16_t>()[i]);
    case DType::u16: return text(dense.data<uint16_t>()[i]);
    case DType::i32: return text(dense.data<int32_t>()[i]);
    case DType::u32: return text(dense.data<uint32_t>()[i]);
    case DType::i64: return text(dense.data<int64_t>()[i]);
    case DType::u64: return text(dense.data<uint64_t>()[i]);
    case DType::f16: return number_text(half_to_float(dense.data<uint16_t>()[i]), "%.4g");
    case DType::bf16: return number_text(bfloat_to_float(dense.data<uint16_t>()[i]), "%.3g");
    case DType::f32: return number_text(dense.data<float>()[i], "%.6g");
    case DType::f64: return number_text(dense.data<double>()[i], "%.10g");
    default: return "?";
  }
}

Array number_array(const char* dtype, const void* value, size_t size) {
  auto bytes = std::make_shared<std::vector<std::byte>>(size);
  std::memcpy(bytes->data(), value, size);
  return {.dtype = dtype, .sizes = {}, .strides = {}, .bytes = *bytes, .owner = bytes};
}

Array to_array(const std::string& key, const Tensor& given, const ArrayOptions& options) {
  DType dtype = given.dtype();
  Tensor dense = dtype == DType::bf16 && !options.bfloat ? to_float(given)
                 : is_contiguous(given.meta())           ? given
                                                         : contiguous_copy(given);
  require(item_size(dtype) > 1 || dtype == DType::boolean || dtype == DType::u8 || dtype == DType::i8, key, ": dtype ",
          dtype, " cannot be written to an .npz file: NumPy has no such dtype");
  auto owner = std::make_shared<Tensor>(dense);
  Array array{.dtype = std::string(name(dense.dtype())), .sizes = {}, .strides = {}, .bytes = {}, .owner = owner};
  for (SymInt size : dense.sizes()) array.sizes.push_back(size.as_int());
  for (SymInt stride : contiguous_strides(dense.sizes())) array.strides.push_back(stride.as_int());
  array.bytes = {dense.bytes(), static_cast<size_t>(elements(dense)) * item_size(dense.dtype())};
  return array;
}

}  // namespace

std::vector<ExpectedInput> expected_inputs(const ExportedProgram& program) {
  bool joint = std::any_of(program.signature.outputs.begin(), program.signature.outputs.end(), [](const auto& spec) {
    return spec.kind == OutputKind::gradient_to_parameter || spec.kind == OutputKind::gradient_to_user_input;
  });
  std::vector<ExpectedInput> out;
  for (const InputSpec& spec : program.signature.inputs) {
    if (spec.kind != InputKind::user_input) continue;
    ExpectedInput input;
    input.name = spec.name;
    if (const Value* value = spec.arg.get<Value>()) {
      const ValueInfo& info = program.graph->info(*value);
      input.meta = info.meta;
      input.number = info.expr;
      switch (info.type) {
        case ValueType::tensor: break;
        case ValueType::integer: input.type = Type::integer; break;
        case ValueType::floating: input.type = Type::floating; break;
        case ValueType::boolean: input.type = Type::boolean; break;
        case ValueType::token:
        case ValueType::custom_object: input.is_object = true; break;
      }
      input.cotangent = joint && info.type == ValueType::tensor && starts_with(spec.name, "tangent_output_");
    } else {
      input.type = Type::constant;
      input.constant = map_tensors<Tensor>(spec.arg, [](Value) { return Tensor(); });
    }
    out.push_back(std::move(input));
  }
  return out;
}

std::vector<ExpectedInput> expected_inputs(const artifact::CallSignature& signature) {
  bool joint = std::any_of(signature.results.begin(), signature.results.end(),
                           [](const artifact::Result& r) { return r.kind == artifact::Result::Kind::gradient; });
  std::vector<ExpectedInput> out(signature.names.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].name = signature.names[i];
    out[i].type = Type::constant;
    out[i].constant = signature.constants[i];
  }
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    ExpectedInput& input = out[signature.leaves[i]];
    input.type = signature.inputs[i].type;
    input.meta = signature.inputs[i].meta;
    input.number = signature.inputs[i].number;
    input.cotangent = joint && input.type == Type::tensor && starts_with(input.name, "tangent_output_");
  }
  return out;
}

std::vector<CallArg> arguments_from(const std::vector<ExpectedInput>& inputs, const std::vector<NamedArray>& arrays,
                                    const std::string& file) {
  std::vector<const Array*> found = assign(inputs, arrays, file);
  std::vector<CallArg> out(inputs.size());
  std::vector<size_t> cotangents;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ExpectedInput& input = inputs[i];
    if (input.type == Type::constant) {
      require(!found[i] || !input.constant.is_none(), file, ": the input ", shown(input.name),
              " is None in this program; leave it out");
      out[i] = found[i] ? CallArg(to_tensor(*found[i])) : input.constant;
    } else if (found[i]) {
      Tensor given = to_tensor(*found[i]);
      bool rounded = input.type == Type::tensor && input.meta.dtype == DType::bf16 && given.dtype() == DType::f32;
      out[i] = rounded ? to_bfloat(given) : given;
    } else {
      require(input.cotangent, file, ": the input ", shown(input.name), " is missing (", describe(input), "); ",
              expected(inputs));
      cotangents.push_back(i);
    }
  }
  if (!cotangents.empty()) {
    sym::Bindings bindings = bound_symbols(inputs, out);
    for (size_t i : cotangents) out[i] = ones(inputs[i].meta, bindings);
  }
  return out;
}

std::vector<NamedResult> named_results(const RunResult& result) {
  std::vector<NamedResult> out;
  for (size_t i = 0; i < result.outputs.size(); ++i) out.push_back({text("output_", i), result.outputs[i]});
  auto add = [&](const char* prefix, const auto& tensors) {
    for (const auto& [name, tensor] : tensors) out.push_back({prefix + name, tensor});
  };
  add("buffer.", result.buffers);
  add("parameter.", result.parameters);
  add("input.", result.inputs);
  add("grad.", result.gradients);
  return out;
}

std::vector<NamedArray> to_arrays(const std::vector<NamedResult>& results, const ArrayOptions& options) {
  std::vector<NamedArray> out;
  for (const auto& [key, value] : results) {
    if (auto* t = value.get<Tensor>()) {
      if (*t) out.push_back({key, to_array(key, *t, options)});
    } else if (auto* b = value.get<bool>()) {
      out.push_back({key, number_array("bool", b, 1)});
    } else if (auto* i = value.get<SymInt>()) {
      int64_t number = i->as_int();
      out.push_back({key, number_array("i64", &number, 8)});
    } else if (auto* d = value.get<double>()) {
      out.push_back({key, number_array("f64", d, 8)});
    }
  }
  return out;
}

std::string summary(const CallArg& value) {
  if (auto* b = value.get<bool>()) return *b ? "True" : "False";
  if (auto* i = value.get<SymInt>()) return text(*i);
  if (auto* d = value.get<double>()) return text(*d);
  if (auto* s = value.get<std::string>()) return quoted(*s);
  const Tensor* tensor = value.get<Tensor>();
  if (!tensor || !*tensor) return "None";
  constexpr int64_t shown = 6;
  Tensor dense = contiguous_copy(*tensor);
  std::vector<std::string> first;
  for (int64_t i = 0; i < std::min(shown, elements(dense)); ++i) first.push_back(element_text(dense, i));
  if (elements(dense) > shown) first.push_back("...");
  return text(dense.dtype(), dense.sizes(), "  ", dense.rank() == 0 ? first[0] : "[" + join(first, ", ") + "]");
}

}  // namespace tenon::tool
