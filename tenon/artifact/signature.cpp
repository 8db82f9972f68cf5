#include "tenon/artifact/signature.h"

#include <array>
#include <cmath>

#include "tenon/export/serde/tree_spec.h"
#include "tenon/io/json.h"
#include "tenon/sym/parse.h"
#include "tenon/sym/print.h"

namespace tenon::artifact {
namespace {

template <class Kind, size_t count>
std::string_view word(const std::array<std::string_view, count>& words, Kind kind) {
  return words[static_cast<size_t>(kind)];
}
template <class Kind, size_t count>
Kind kind_of(const std::array<std::string_view, count>& words, Json json) {
  for (size_t i = 0; i < count; ++i)
    if (words[i] == json.as_string()) return static_cast<Kind>(i);
  json.fail("expected one of ", join(std::vector<std::string>(words.begin(), words.end()), ", "), ", got ",
            quoted(json.as_string()));
}
constexpr std::array<std::string_view, 3> result_kinds = {"user", "viewed", "gradient"};
constexpr std::array<std::string_view, 3> update_kinds = {"parameter", "buffer", "input"};
constexpr std::array<std::string_view, 5> input_types = {"tensor", "integer", "floating", "boolean", "constant"};

// ---- Writing ----

void write(JsonWriter& out, const std::vector<std::string>& names) {
  out.begin_array();
  for (const std::string& name : names) out.string(name);
  out.end_array();
}
void write(JsonWriter& out, const Sizes& sizes) {
  out.begin_array();
  for (SymInt e : sizes) {
    if (e.is_int()) out.integer(e.as_int());
    else out.string(sym::to_infix(e));
  }
  out.end_array();
}
void write(JsonWriter& out, const std::vector<int64_t>& numbers) {
  out.begin_array();
  for (int64_t n : numbers) out.integer(n);
  out.end_array();
}

void write_constant(JsonWriter& out, const CallArg& arg) {
  if (arg.is_none()) return out.null();
  out.begin_object();
  if (auto* b = arg.get<bool>()) out.field("bool", *b);
  else if (auto* i = arg.get<SymInt>()) out.field("int", i->as_int());
  else if (auto* d = arg.get<double>()) {
    if (std::isfinite(*d)) out.field("float", *d);
    else out.field("float", std::isnan(*d) ? "nan" : *d > 0 ? "inf" : "-inf");
  } else if (auto* s = arg.get<std::string>()) {
    out.field("string", std::string_view(*s));
  } else {
    fail_unsupported("an argument or result that is neither tensor nor number nor string cannot be compiled");
  }
  out.end_object();
}

void write_input(JsonWriter& out, const loop::Input& input, size_t leaf) {
  out.begin_object();
  out.field("name", std::string_view(input.name));
  out.field("leaf", static_cast<int64_t>(leaf));
  out.field("type", word(input_types, input.type));
  if (input.type == loop::Input::Type::tensor) {
    out.field("dtype", name(input.meta.dtype));
    out.key("sizes");
    write(out, input.meta.sizes);
    out.key("strides");
    write(out, input.meta.strides);
  } else {
    out.field("number", sym::to_infix(input.number));
  }
  out.field("written", input.written);
  out.end_object();
}

void write_range(JsonWriter& out, const sym::Ranges::Entry& entry) {
  out.begin_object();
  out.field("symbol", entry.symbol.name());
  out.field("lo", entry.range.lo);
  out.field("hi", entry.range.hi);
  out.end_object();
}

void write_result(JsonWriter& out, const Result& r) {
  out.begin_object();
  out.field("kind", word(result_kinds, r.kind));
  out.field("leaf", static_cast<int64_t>(r.leaf));
  out.key("names");
  write(out, r.names);
  out.field("number", r.number);
  out.end_object();
}

void write_update(JsonWriter& out, const Update& u) {
  out.begin_object();
  out.field("kind", word(update_kinds, u.kind));
  out.field("state", u.state);
  out.key("names");
  write(out, u.names);
  out.field("input", static_cast<int64_t>(u.input));
  out.end_object();
}

void write_sample(JsonWriter& out, const Sample& s) {
  out.begin_object();
  out.field("leaf", static_cast<int64_t>(s.leaf));
  out.field("dtype", name(s.dtype));
  out.key("sizes");
  write(out, s.sizes);
  out.key("strides");
  write(out, s.strides);
  out.field("offset", static_cast<int64_t>(s.offset));
  out.field("bytes", static_cast<int64_t>(s.bytes));
  out.end_object();
}

template <class List, class F>
void write_list(JsonWriter& out, std::string_view key, const List& list, F&& each) {
  out.key(key);
  out.begin_array();
  for (const auto& item : list) each(out, item);
  out.end_array();
}

// ---- Reading ----

size_t as_size(Json json) {
  int64_t value = json.as_int();
  json.require(value >= 0, "expected a number that is not negative, got ", value);
  return static_cast<size_t>(value);
}
std::vector<std::string> as_names(Json json) {
  std::vector<std::string> out;
  for (Json item : json.items()) out.emplace_back(item.as_string());
  return out;
}
Sizes as_sizes(Json json) {
  Sizes out;
  for (Json item : json.items()) out.push_back(item.is_int() ? SymInt(item.as_int()) : sym::parse(item.as_string()));
  return out;
}
std::vector<int64_t> as_numbers(Json json) {
  std::vector<int64_t> out;
  for (Json item : json.items()) out.push_back(item.as_int());
  return out;
}
DType as_dtype(Json json) {
  auto dtype = dtype_of(json.as_string());
  json.require(dtype.has_value(), "expected a dtype, got ", quoted(json.as_string()));
  return *dtype;
}
CallArg as_constant(Json json) {
  if (json.is_null()) return {};
  if (auto b = json.find("bool")) return b->as_bool();
  if (auto i = json.find("int")) return i->as_int();
  if (auto s = json.find("string")) return std::string(s->as_string());
  Json number = json.at("float");
  if (!number.is_string()) return number.as_double();
  std::string_view said = number.as_string();
  return said == "nan" ? std::nan("") : said == "inf" ? HUGE_VAL : -HUGE_VAL;
}

}  // namespace

std::string to_json(const CallSignature& s) {
  JsonWriter out;
  out.begin_object();
  out.key("inputs");
  out.begin_array();
  for (size_t i = 0; i < s.inputs.size(); ++i) write_input(out, s.inputs[i], s.leaves[i]);
  out.end_array();
  write_list(out, "results", s.results, write_result);
  write_list(out, "updates", s.updates, write_update);
  out.key("names");
  write(out, s.names);
  out.key("parameters");
  write(out, s.parameters);
  write_list(out, "constants", s.constants, write_constant);
  write_list(out, "outputs", s.outputs, write_constant);
  out.field("in_spec", to_tree_spec(s.in));
  out.field("out_spec", to_tree_spec(s.out));
  write_list(out, "ranges", s.ranges.entries(), write_range);
  write_list(out, "samples", s.samples, write_sample);
  out.field("has_samples", s.has_samples);
  out.end_object();
  return out.take();
}

CallSignature parse_signature(std::string_view json, const std::string& subject) {
  JsonDocument document(json, subject);
  Json root = document.root();
  CallSignature out;
  for (Json each : root.at("inputs").items()) {
    loop::Input input;
    input.name = each.at("name").as_string();
    input.type = kind_of<loop::Input::Type>(input_types, each.at("type"));
    if (input.type == loop::Input::Type::tensor) {
      input.meta.dtype = as_dtype(each.at("dtype"));
      input.meta.sizes = as_sizes(each.at("sizes"));
      input.meta.strides = as_sizes(each.at("strides"));
      each.require(input.meta.sizes.size() == input.meta.strides.size(), "expected as many strides as sizes");
    } else {
      input.number = sym::parse(each.at("number").as_string());
    }
    input.written = each.at("written").as_bool();
    out.inputs.push_back(std::move(input));
    out.leaves.push_back(as_size(each.at("leaf")));
  }
  for (Json each : root.at("results").items())
    out.results.push_back({kind_of<Result::Kind>(result_kinds, each.at("kind")), as_size(each.at("leaf")),
                           as_names(each.at("names")), each.at("number").as_bool()});
  for (Json each : root.at("updates").items())
    out.updates.push_back({kind_of<Update::Kind>(update_kinds, each.at("kind")),
                           std::string(each.at("state").as_string()), as_names(each.at("names")),
                           as_size(each.at("input"))});
  out.names = as_names(root.at("names"));
  out.parameters = as_names(root.at("parameters"));
  for (Json each : root.at("constants").items()) out.constants.push_back(as_constant(each));
  for (Json each : root.at("outputs").items()) out.outputs.push_back(as_constant(each));
  out.in = parse_tree_spec(root.at("in_spec"));
  out.out = parse_tree_spec(root.at("out_spec"));
  for (Json each : root.at("ranges").items())
    out.ranges.set(sym::parse(each.at("symbol").as_string()), {each.at("lo").as_int(), each.at("hi").as_int()});
  for (Json each : root.at("samples").items())
    out.samples.push_back({as_size(each.at("leaf")), as_dtype(each.at("dtype")), as_numbers(each.at("sizes")),
                           as_numbers(each.at("strides")), as_size(each.at("offset")), as_size(each.at("bytes"))});
  out.has_samples = root.at("has_samples").as_bool();
  // What the rest of the program relies on.
  root.require(out.constants.size() == out.names.size(), "expected as many constants as names");
  for (size_t leaf : out.leaves) root.require(leaf < out.names.size(), "an input is no argument of the program");
  for (const Result& r : out.results)
    root.require(r.kind != Result::Kind::user || r.leaf < out.outputs.size(), "a result has no place");
  for (const Update& u : out.updates)
    root.require(u.kind != Update::Kind::input || u.input < out.inputs.size(), "an update has no input");
  for (const Sample& s : out.samples)
    root.require(s.leaf < out.names.size() && s.sizes.size() == s.strides.size(), "a sample has no place");
  return out;
}

}  // namespace tenon::artifact
