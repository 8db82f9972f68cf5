#include "tests/hostile/program_text.h"

#include <zlib.h>

#include <set>

#include "tenon/base/error.h"
#include "tenon/export/serde/codes.h"
#include "tenon/io/json.h"
#include "tenon/io/zip.h"
#include "tenon/sym/print.h"

namespace tenon {
namespace {

std::string member(std::string_view name, std::string_view value) { return text(json_string(name), ": ", value); }

std::string size_json(SymInt size) {
  if (size.is_int()) return text(R"({"as_int": )", size.as_int(), "}");
  return as_expr(sym::to_srepr(size), 4);
}

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(i < 8 ? value >> 8 * i & 255 : 0);
}

std::string squeezed(const std::string& content) {
  z_stream stream{};
  expect(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) == Z_OK, "zlib does not start");
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  expect(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib does not end");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string as_tensor(std::string_view name) { return text(R"({"as_tensor": {"name": )", json_string(name), "}}"); }
std::string as_expr(std::string_view expression, int64_t hint) {
  return text(R"({"as_expr": {"expr_str": )", json_string(expression), R"(, "hint": {"as_int": )", hint, "}}}");
}

std::string meta_json(const TensorMeta& meta) {
  std::string sizes, strides;
  for (SymInt s : meta.sizes) GraphText::add(sizes, size_json(s));
  for (SymInt s : meta.strides) GraphText::add(strides, size_json(s));
  return text(R"({"dtype": )", serde::dtype_code(meta.dtype), R"(, "sizes": [)", sizes, R"(], "requires_grad": )",
              meta.requires_grad ? "true" : "false", R"(, "device": {"type": "cpu", "index": null}, "strides": [)",
              strides, R"(], "storage_offset": )", size_json(meta.offset), R"(, "layout": 7})");
}

void GraphText::tensor(std::string_view name, const TensorMeta& meta) { add(tensors, member(name, meta_json(meta))); }
void GraphText::number(std::string_view name, std::string_view expr) { add(ints, member(name, expr)); }

void GraphText::node(std::string_view target, const std::vector<std::pair<std::string, std::string>>& args,
                     const std::vector<std::string>& results, std::string_view more) {
  std::string given, made;
  for (const auto& [name, arg] : args)
    add(given, text(R"({"name": )", json_string(name), R"(, "arg": )", arg, R"(, "kind": 1})"));
  for (const std::string& result : results) add(made, result);
  add(nodes, text(R"({"target": )", json_string(target), R"(, "inputs": [)", given, R"(], "outputs": [)", made,
                  R"(], "metadata": {}, "is_hop_single_tensor_return": null)", more, "}"));
}

std::string GraphText::json() const {
  return text(R"({"inputs": [)", inputs, R"(], "outputs": [)", outputs, R"(], "nodes": [)", nodes,
              R"(], "tensor_values": {)", tensors, R"(}, "sym_int_values": {)", ints, R"(}, "sym_bool_values": {)",
              bools, R"(}, "is_single_tensor_return": false, "custom_obj_values": {}, "sym_float_values": {)", floats,
              "}}");
}

void ProgramText::user_input(std::string_view name, const TensorMeta& meta) {
  tensor(name, meta);
  input(as_tensor(name));
  add(input_specs, text(R"({"user_input": {"arg": )", as_tensor(name), "}}"));
  ++user_inputs;
}

void ProgramText::parameter(std::string_view name, const TensorMeta& meta) {
  TensorMeta trained = meta;
  trained.requires_grad = true;
  tensor(name, trained);
  input(as_tensor(name));
  add(input_specs, text(R"({"parameter": {"arg": {"name": )", json_string(name), R"(}, "parameter_name": )",
                        json_string(name), "}}"));
}

void ProgramText::buffer(std::string_view name, const TensorMeta& meta) {
  tensor(name, meta);
  input(as_tensor(name));
  add(input_specs, text(R"({"buffer": {"arg": {"name": )", json_string(name), R"(}, "buffer_name": )",
                        json_string(name), R"(, "persistent": true}})"));
}

void ProgramText::user_output(std::string_view name) {
  output(as_tensor(name));
  add(output_specs, text(R"({"user_output": {"arg": )", as_tensor(name), "}}"));
  ++user_outputs;
}

void ProgramText::range(std::string_view symbol, int64_t least, int64_t most) {
  add(ranges, member(symbol, text(R"({"min_val": )", least, R"(, "max_val": )", most, "}")));
}

std::string ProgramText::program_json() const {
  const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";
  std::string in, out;
  for (size_t i = 0; i < user_inputs; ++i) add(in, leaf);
  for (size_t i = 0; i < user_outputs; ++i) add(out, leaf);
  std::string in_spec =
      text(R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": "builtins.tuple", )",
           R"("context": "null", "children_spec": [)", in,
           R"(]}, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}])");
  std::string out_spec = text(R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [)", out, "]}]");
  std::string calls = text(R"({"fqn": "", "signature": {"inputs": [], "outputs": [], "in_spec": )",
                           json_string(in_spec), R"(, "out_spec": )", json_string(out_spec), "}}");
  return text(R"({"graph_module": {"graph": )", json(), R"(, "signature": {"input_specs": [)", input_specs,
              R"(], "output_specs": [)", output_specs, R"(]}, "module_call_graph": [)", calls,
              module_calls.empty() ? "" : ", ", module_calls, R"(], "metadata": {)", metadata,
              R"(}, "treespec_namedtuple_fields": {}}, "opset_version": {)", opset, R"(}, "range_constraints": {)",
              ranges, R"(}, "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"], )",
              R"("torch_version": "2.15.0", "guards_code": [)", guards, "]}");
}

std::string ProgramText::archive(const std::vector<std::pair<std::string, std::string>>& entries) const {
  std::vector<std::pair<std::string, std::string>> all = {
      {"m/archive_format", "pt2"},
      {"m/archive_version", "0"},
      {"m/.data/version", "6"},
      {"m/byteorder", "little"},
      {"m/models/model.json", program_json()},
  };
  std::set<std::string> without = {"data/weights/model_weights_config.json",
                                   "data/constants/model_constants_config.json"};
  for (const auto& [name, content] : entries) {
    all.emplace_back("m/" + name, content);
    without.erase(name);
  }
  for (const std::string& name : without) all.emplace_back("m/" + name, R"({"config": {}})");
  return archive_of(all, false);
}

std::string archive_of(const std::vector<std::pair<std::string, std::string>>& entries, bool deflated) {
  if (!deflated) {
    std::string out;
    ZipWriter writer(&out);
    for (const auto& [name, content] : entries) writer.add(name, content);
    writer.commit();
    return out;
  }
  std::string out, directory;
  for (const auto& [name, content] : entries) {
    std::string packed = squeezed(content);
    auto crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
    uint64_t header = out.size();
    std::string common;  // flags to the length of the extra field, as both records have them
    put(common, 0, 2);
    put(common, 8, 2);
    put(common, 0, 4);
    put(common, crc, 4);
    put(common, packed.size(), 4);
    put(common, content.size(), 4);
    put(common, name.size(), 2);
    put(common, 0, 2);
    put(out, 0x04034b50, 4);
    put(out, 20, 2);
    out += common + name + packed;
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    put(directory, 20, 2);
    directory += common;
    put(directory, 0, 10);
    put(directory, header, 4);
    directory += name;
  }
  uint64_t start = out.size();
  out += directory;
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, entries.size(), 2);
  put(out, entries.size(), 2);
  put(out, directory.size(), 4);
  put(out, start, 4);
  put(out, 0, 2);
  return out;
}

}  // namespace tenon
