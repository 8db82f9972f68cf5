// Every list of a file, n long against 4 n: the work grows as the list does.
#include "tests/hostile/scaling.h"

#include <gtest/gtest.h>

namespace tenon::scaling {
namespace {

TEST(Scaling, nodes) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        std::string last = "x";
        for (size_t i = 0; i < n; ++i) last = relu(p, i, last);
        return finished(p, last);
      },
      250);
}

TEST(Scaling, nodes_that_are_not_known) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        for (size_t i = 0; i < n; ++i) {
          p.tensor(text("u", i), f32({2}));
          p.node(text("torch.ops.mine.op", i, ".default"), {{"a", as_tensor("x")}}, {as_tensor(text("u", i))});
        }
        return finished(p);
      },
      250, "operators are not supported");
}

TEST(Scaling, inputs) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        std::string last = "x";
        for (size_t i = 0; i < n; ++i) p.user_input(text("x", i), f32({2, 3}));
        for (size_t i = 0; i < n; ++i) {
          std::string name = text("a", i);
          p.tensor(name, f32({2, 3}));
          p.node("torch.ops.aten.add.Tensor", {{"self", as_tensor(last)}, {"other", as_tensor(text("x", i))}},
                 {as_tensor(name)});
          last = name;
        }
        return finished(p, last);
      },
      250);
}

TEST(Scaling, outputs) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        for (size_t i = 0; i < n; ++i) p.user_output(relu(p, i, "x"));
        return finished(p);
      },
      250);
}

TEST(Scaling, the_same_output) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        relu(p, 0, "x");
        for (size_t i = 0; i < n; ++i) p.user_output("r0");
        return finished(p);
      },
      250);
}

TEST(Scaling, results_of_one_node) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        std::string list, trace;
        for (size_t i = 0; i < n; ++i) {
          p.tensor(text("c", i), f32({1, 3}));
          GraphText::add(list, text(R"({"name": "c)", i, "\"}"));
          trace += "  File \\\"a.py\\\", line 1, in f\\n    x\\n";
        }
        p.user_input("w", f32({static_cast<int64_t>(n), 3}));
        p.node("torch.ops.aten.split.Tensor", {{"self", as_tensor("w")}, {"split_size", R"({"as_int": 1})"}},
               {text(R"({"as_tensors": [)", list, "]}")}, text(R"(, "metadata": {"stack_trace": ")", trace, "\"}"));
        size_t at = p.nodes.find("\"metadata\": {}, ");
        p.nodes.erase(at, 16);
        return finished(p);
      },
      250);
}

TEST(Scaling, tensors_of_one_argument) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        std::string list;
        for (size_t i = 0; i < n; ++i) {
          p.user_input(text("x", i), f32({1, 3}));
          GraphText::add(list, text(R"({"name": "x)", i, "\"}"));
        }
        p.tensor("all", f32({static_cast<int64_t>(n), 3}));
        p.node("torch.ops.aten.cat.default", {{"tensors", text(R"({"as_tensors": [)", list, "]}")}},
               {as_tensor("all")});
        p.user_output("all");
        return finished(p);
      },
      250);
}

TEST(Scaling, ranges) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        for (size_t i = 0; i < n; ++i) p.range(text("s", i), 2, 100);
        return finished(p);
      },
      500);
}

/// An input with a size of its own, and a result of that size.
void add_sized(ProgramText& p, size_t i) {
  SymInt s = SymInt::symbol(text("s", i), {.positive = true});
  p.range(text("s", i), 2, 100);
  p.user_input(text("x", i), f32({s, 3}));
  p.user_output(relu(p, i, text("x", i), f32({s, 3})));
}

TEST(Scaling, symbols_of_inputs) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        for (size_t i = 0; i < n; ++i) add_sized(p, i);
        return finished(p);
      },
      200);
}

TEST(Scaling, composites_beside_ranges) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        p.user_input("q", f32({1, 1, 4, 4}));
        std::string last = "q";
        for (size_t i = 0; i < n; ++i) {
          p.range(text("s", i), 2, 100);
          std::string name = text("a", i);
          p.tensor(name, f32({1, 1, 4, 4}));
          p.node("torch.ops.aten.scaled_dot_product_attention.default",
                 {{"query", as_tensor(last)}, {"key", as_tensor("q")}, {"value", as_tensor("q")}}, {as_tensor(name)});
          last = name;
        }
        p.user_output(last);
        return finished(p);
      },
      50);
}

TEST(Scaling, module_calls) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        for (size_t i = 0; i < n; ++i)
          GraphText::add(p.module_calls,
                         text(R"({"fqn": "m)", i, R"(", "signature": {"inputs": [], "outputs": [], "in_spec": )",
                              json_string(R"([1, {"type": "builtins.dict", "context": "[]", "children_spec": []}])"),
                              R"(, "out_spec": "[1, {\"type\": null, \"context\": null, \"children_spec\": []}]"}})"));
        return finished(p);
      },
      250);
}

std::string region(size_t i, const std::string& inside) {
  GraphText g;
  g.tensor("x", f32({2, 3}));
  g.input(as_tensor("x"));
  g.nodes = inside;
  std::string name = relu(g, i, "x");
  g.output(as_tensor(name));
  return g.json();
}

TEST(Scaling, subgraphs_of_one_name_beside_ranges) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        for (size_t i = 0; i < n; ++i) {
          p.range(text("s", i), 2, 100);
          p.tensor(text("g", i), f32({2, 3}));
          p.node("torch.ops.higher_order.wrap_with_set_grad_enabled",
                 {{"", R"({"as_bool": false})"},
                  {"", text(R"({"as_graph": {"name": "submod", "graph": )", region(i, ""), "}}")},
                  {"", as_tensor("x")}},
                 {as_tensor(text("g", i))});
        }
        return finished(p);
      },
      100);
}

TEST(Scaling, extra_files) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        finished(p);
        std::vector<std::pair<std::string, std::string>> files;
        for (size_t i = 0; i < n; ++i) files.emplace_back(text("extra/f", i), "content");
        return p.archive(files);
      },
      250);
}

// So many tensors that a file stores, as inputs of the program: `spec` of each, by its name.
std::string stored(size_t n, const char* folder, const char* config_name, bool written,
                   const std::function<std::string(const std::string&)>& spec) {
  ProgramText p = start();
  std::string config;
  std::vector<std::pair<std::string, std::string>> files;
  for (size_t i = 0; i < n; ++i) {
    std::string name = text("w", i);
    p.tensor(name, f32({2, 3}));
    p.input(as_tensor(name));
    GraphText::add(p.input_specs, spec(name));
    GraphText::add(config,
                   text("\"p.", name, R"(": {"path_name": ")", name,
                        R"(", "is_param": true, "use_pickle": false, "tensor_meta": )", meta_json(f32({2, 3})), "}"));
    files.emplace_back(folder + name, std::string(24, '\0'));
    if (!written) continue;
    p.tensor(text("a", i), f32({2, 3}));
    p.node("torch.ops.aten.add_.Tensor", {{"self", as_tensor(name)}, {"other", as_tensor("x")}},
           {as_tensor(text("a", i))});
  }
  finished(p);
  files.emplace_back(text(folder, config_name), text(R"({"config": {)", config, "}}"));
  return p.archive(files);
}

TEST(Scaling, weights) {
  expect_linear(
      [](size_t n) {
        return stored(n, "data/weights/", "model_weights_config.json", false, [](const std::string& name) {
          return text(R"({"parameter": {"arg": {"name": ")", name, R"("}, "parameter_name": "p.)", name, "\"}}");
        });
      },
      250);
}

TEST(Scaling, buffers_that_are_written) {
  expect_linear(
      [](size_t n) {
        return stored(n, "data/weights/", "model_weights_config.json", true, [](const std::string& name) {
          return text(R"({"buffer": {"arg": {"name": ")", name, R"("}, "buffer_name": "p.)", name,
                      R"(", "persistent": true}})");
        });
      },
      250);
}

TEST(Scaling, constants) {
  expect_linear(
      [](size_t n) {
        return stored(n, "data/constants/", "model_constants_config.json", false, [](const std::string& name) {
          return text(R"({"tensor_constant": {"arg": {"name": ")", name, R"("}, "tensor_constant_name": "p.)", name,
                      "\"}}");
        });
      },
      250);
}

TEST(Scaling, programs_of_one_file) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        finished(p);
        std::vector<std::pair<std::string, std::string>> files;
        for (size_t i = 0; i < n; ++i) files.emplace_back(text("models/other", i, ".json"), p.program_json());
        return p.archive(files);
      },
      50);
}

// What vmap and jvp leave: `nodes` nodes between an entry and `exits` exits.
constexpr std::string_view predispatch = "torch._functorch.predispatch.";

std::string mapped(GraphText& g, size_t which, size_t nodes, size_t exits, const std::string& from) {
  auto name = [&](std::string_view what, size_t i) { return text(what, which, "_", i); };
  TensorMeta row = f32({3});
  g.tensor(name("m", 0), row);
  g.node(text(predispatch, "_add_batch_dim"),
         {{"", as_tensor(from)}, {"", R"({"as_int": 0})"}, {"", R"({"as_int": 1})"}}, {as_tensor(name("m", 0))});
  for (size_t i = 1; i <= nodes; ++i) {
    g.tensor(name("m", i), row);
    g.node("torch.ops.aten.relu.default", {{"self", as_tensor(name("m", i - 1))}}, {as_tensor(name("m", i))});
  }
  for (size_t i = 0; i < exits; ++i) {
    g.tensor(name("o", i), f32({2, 3}));
    g.node(text(predispatch, "_remove_batch_dim"),
           {{"", as_tensor(name("m", nodes))},
            {"", R"({"as_int": 1})"},
            {"", R"({"as_int": 2})"},
            {"", R"({"as_int": 0})"}},
           {as_tensor(name("o", i))});
  }
  return name("o", 0);
}

std::string moved(GraphText& g, size_t which, size_t nodes, size_t exits, const std::string& from) {
  auto name = [&](std::string_view what, size_t i) { return text(what, which, "_", i); };
  TensorMeta meta = f32({2, 3});
  g.tensor(name("d", 0), meta);
  g.node(text(predispatch, "_make_dual"), {{"", as_tensor(from)}, {"", as_tensor(from)}, {"", R"({"as_int": 0})"}},
         {as_tensor(name("d", 0))});
  for (size_t i = 1; i <= nodes; ++i) {
    g.tensor(name("d", i), meta);
    g.node("torch.ops.aten.relu.default", {{"self", as_tensor(name("d", i - 1))}}, {as_tensor(name("d", i))});
  }
  for (size_t i = 0; i < exits; ++i) {
    g.tensor(name("p", i), meta);
    g.tensor(name("t", i), meta);
    g.node(text(predispatch, "_unpack_dual"), {{"", as_tensor(name("d", nodes))}, {"", R"({"as_int": 0})"}},
           {as_tensor(name("p", i)), as_tensor(name("t", i))});
  }
  return name("t", 0);
}

using Stretch = std::string (*)(GraphText&, size_t, size_t, size_t, const std::string&);

Make stretches(Stretch stretch) {
  return [=](size_t n) {
    ProgramText p = start();
    std::string last = "x";
    for (size_t i = 0; i < n; ++i) last = stretch(p, i, 1, 1, last);
    return finished(p, last);
  };
}
Make nodes_of(Stretch stretch) {
  return [=](size_t n) {
    ProgramText p = start();
    return finished(p, stretch(p, 0, n, 1, "x"));
  };
}
Make exits_of(Stretch stretch) {
  return [=](size_t n) {
    ProgramText p = start();
    return finished(p, stretch(p, 0, 1, n, "x"));
  };
}

TEST(Scaling, batches) { expect_linear(stretches(mapped), 50); }
TEST(Scaling, nodes_of_a_batch) { expect_linear(nodes_of(mapped), 100); }
TEST(Scaling, tensors_that_leave_a_batch) { expect_linear(exits_of(mapped), 100); }
TEST(Scaling, directions) { expect_linear(stretches(moved), 50); }
TEST(Scaling, nodes_that_move) { expect_linear(nodes_of(moved), 100); }
TEST(Scaling, tensors_that_leave_with_a_direction) { expect_linear(exits_of(moved), 100); }

TEST(Scaling, views_of_views) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        std::string last = "x";
        for (size_t i = 0; i < n; ++i) {
          std::string name = text("v", i);
          TensorMeta meta = i % 2 == 0 ? f32({3, 2}) : f32({2, 3});
          if (i % 2 == 0) meta.strides = {1, 3};
          p.tensor(name, meta);
          p.node("torch.ops.aten.transpose.int",
                 {{"self", as_tensor(last)}, {"dim0", R"({"as_int": 0})"}, {"dim1", R"({"as_int": 1})"}},
                 {as_tensor(name)});
          last = name;
        }
        return finished(p, n % 2 == 0 ? last : text("v", n - 2));
      },
      100);
}

TEST(Scaling, writes_to_parts_of_one_tensor) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        p.tensor("c", f32({2, 3}));
        p.node("torch.ops.aten.clone.default", {{"self", as_tensor("x")}}, {as_tensor("c")});
        for (size_t i = 0; i < n; ++i) {
          p.tensor(text("s", i), f32({3}));
          p.node("torch.ops.aten.select.int",
                 {{"self", as_tensor("c")}, {"dim", R"({"as_int": 0})"}, {"index", R"({"as_int": 1})"}},
                 {as_tensor(text("s", i))});
          p.tensor(text("w", i), f32({3}));
          p.node("torch.ops.aten.mul_.Tensor", {{"self", as_tensor(text("s", i))}, {"other", as_tensor(text("s", i))}},
                 {as_tensor(text("w", i))});
        }
        return finished(p, "c");
      },
      100);
}

std::string sizes_that_data_tell(size_t n) {
  ProgramText p = start();
  p.user_input("m", make_meta(DType::boolean, {2, 3}));
  for (size_t i = 0; i < n; ++i) {
    SymInt u = SymInt::symbol(text("u", i));
    p.range(text("u", i), 0, 6);
    p.tensor(text("a", i), f32({u}));
    p.node("torch.ops.aten.masked_select.default", {{"self", as_tensor("x")}, {"mask", as_tensor("m")}},
           {as_tensor(text("a", i))});
    p.user_output(relu(p, i, text("a", i), f32({u})));
  }
  return finished(p);
}

TEST(Scaling, sizes_that_data_tell) { expect_linear(sizes_that_data_tell, 100); }
TEST(Scaling, runs_with_sizes_that_data_tell) { expect_linear(sizes_that_data_tell, 250, go_and_run); }

// Ten thousand nodes of several kinds: stages, views, products, host functions.
std::string mixed_nodes(size_t n) {
  ProgramText p = start();
  std::string last = "x";
  for (size_t i = 0; i < n; i += 5) {
    std::string t = text("t", i), m = text("m", i), c = text("c", i), s = text("s", i);
    TensorMeta turned = f32({3, 2});
    turned.strides = {1, 3};
    p.tensor(t, turned);
    p.node("torch.ops.aten.t.default", {{"self", as_tensor(last)}}, {as_tensor(t)});
    p.tensor(m, f32({2, 2}));
    p.node("torch.ops.aten.mm.default", {{"self", as_tensor(last)}, {"mat2", as_tensor(t)}}, {as_tensor(m)});
    p.tensor(c, f32({2, 3}));
    p.node("torch.ops.aten.mm.default", {{"self", as_tensor(m)}, {"mat2", as_tensor("x")}}, {as_tensor(c)});
    p.tensor(s, f32({2, 3}));
    p.node("torch.ops.aten.cumsum.default", {{"self", as_tensor(c)}, {"dim", R"({"as_int": 1})"}}, {as_tensor(s)});
    last = relu(p, i, s);
  }
  return finished(p, last);
}

TEST(Scaling, ten_thousand_nodes_from_file_to_results) { expect_linear(mixed_nodes, 2'500, go_and_run); }

TEST(Scaling, pickled_values) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        finished(p);
        std::string pickle = "\x80\x02((";
        for (size_t i = 0; i < n; ++i) pickle += i % 3 == 0 ? "N" : i % 3 == 1 ? "K\x07" : "(t";
        pickle += "t}t.";
        return p.archive({{"data/sample_inputs/model.pt", archive_of({{"archive/data.pkl", pickle}}, false)}});
      },
      2000, "in the sample inputs");
}

TEST(Scaling, guards) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        for (size_t i = 0; i < n; ++i) GraphText::add(p.guards, json_string(text("L['x'].size()[0] <= ", i + 2)));
        return finished(p);
      },
      250);
}

TEST(Scaling, guards_of_many_inputs) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        for (size_t i = 0; i < n; ++i) {
          add_sized(p, i);
          GraphText::add(p.guards, json_string(text("L['x", i, "'].size()[0] <= 50")));
        }
        return finished(p);
      },
      100);
}

TEST(Scaling, metadata_and_opsets) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        for (size_t i = 0; i < n; ++i) {
          GraphText::add(p.opset, text("\"o", i, "\": ", i));
          GraphText::add(p.metadata, text("\"k", i, "\": \"v\""));
        }
        return finished(p);
      },
      500);
}

TEST(Scaling, numbers_computed_from_sizes) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        SymInt s = SymInt::symbol("s0", {.positive = true});
        p.range("s0", 2, 100);
        p.user_input("y", f32({s, 3}));
        std::string last = R"({"as_sym_int": {"as_name": "n0"}})";
        p.number("n0", as_expr("Symbol('s0', positive=True, integer=True)", 4));
        p.node("torch.ops.aten.sym_size.int", {{"self", as_tensor("y")}, {"dim", R"({"as_int": 0})"}}, {last});
        for (size_t i = 1; i < n; ++i) {
          std::string name = text(R"({"as_sym_int": {"as_name": "n)", i, "\"}}");
          p.number(text("n", i), as_expr(text("Add(Symbol('s0', positive=True, integer=True), Integer(", i, "))"),
                                         4 + static_cast<int64_t>(i)));
          p.node("_operator.add", {{"", last}, {"", R"({"as_int": 1})"}}, {name});
          last = name;
        }
        return finished(p);
      },
      250);
}

TEST(Scaling, parts_of_one_expression) {
  expect_linear(
      [](size_t n) {
        ProgramText p = start();
        std::string sum = "Max(Integer(1)";
        for (size_t i = 0; i < n; ++i) {
          p.range(text("s", i), 2, 100);
          sum += text(", Symbol('s", i, "', positive=True, integer=True)");
        }
        TensorMeta meta = f32({2});
        p.tensors += text(", \"e\": ", meta_json(meta));
        p.tensors.replace(p.tensors.rfind(R"({"as_int": 2})"), 13, as_expr(sum + ")", 4));
        p.input(as_tensor("e"));
        GraphText::add(p.input_specs, text(R"({"user_input": {"arg": )", as_tensor("e"), "}}"));
        ++p.user_inputs;
        return finished(p);
      },
      250);
}

}  // namespace
}  // namespace tenon::scaling
