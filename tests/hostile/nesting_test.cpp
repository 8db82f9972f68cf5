// Control flow, batches and directions within one another: n deep against 4 n.
#include <gtest/gtest.h>

#include "tests/hostile/scaling.h"

namespace tenon::scaling {
namespace {

std::string graph_arg(const std::string& name, const GraphText& g) {
  return text(R"({"as_graph": {"name": ")", name, R"(", "graph": )", g.json(), "}}");
}
std::string tensors(std::initializer_list<std::string_view> names) {
  std::string items;
  for (std::string_view name : names) GraphText::add(items, text(R"({"name": ")", name, "\"}"));
  return text(R"({"as_tensors": [)", items, "]}");
}

/// One node around a graph within: what it is called, its operands, its results.
using Within = void (*)(GraphText& g, size_t depth, const std::string& from, const std::string& to);

void choice(GraphText& g, size_t depth, const std::string& from, const std::string& to);
void loop(GraphText& g, size_t depth, const std::string& from, const std::string& to);
void scan(GraphText& g, size_t depth, const std::string& from, const std::string& to);
void rows(GraphText& g, size_t depth, const std::string& from, const std::string& to);

/// A graph over `x` (and what else it is given) that ends in another of its kind, or in a product.
GraphText body(Within within, size_t depth, const TensorMeta& meta) {
  GraphText g;
  g.tensor("x", meta);
  g.input(as_tensor("x"));
  std::string last = relu(g, 0, "x", meta);
  if (depth > 1) {
    within(g, depth - 1, last, "inner");
    last = "inner";
  }
  last = relu(g, 1, last, meta);
  g.output(as_tensor(last));
  return g;
}

void choice(GraphText& g, size_t depth, const std::string& from, const std::string& to) {
  TensorMeta meta = f32({2, 3});
  g.tensor(to, meta);
  g.tensor(to + "_any", make_meta(DType::boolean, {}));
  g.node("torch.ops.aten.any.default", {{"self", as_tensor(from)}}, {as_tensor(to + "_any")});
  GraphText otherwise = body(nullptr, 1, meta);
  g.node("torch.ops.higher_order.cond",
         {{"", as_tensor(to + "_any")},
          {"", graph_arg("yes", body(choice, depth, meta))},
          {"", graph_arg("no", otherwise)},
          {"", tensors({from})}},
         {tensors({to})});
}

void loop(GraphText& g, size_t depth, const std::string& from, const std::string& to) {
  TensorMeta meta = f32({2, 3});
  g.tensor(to, meta);
  GraphText condition;
  condition.tensor("x", meta);
  condition.input(as_tensor("x"));
  condition.tensor("any", make_meta(DType::boolean, {}));
  condition.node("torch.ops.aten.any.default", {{"self", as_tensor("x")}}, {as_tensor("any")});
  condition.output(as_tensor("any"));
  g.node("torch.ops.higher_order.while_loop",
         {{"", graph_arg("more", condition)},
          {"", graph_arg("round", body(loop, depth, meta))},
          {"", tensors({from})},
          {"", tensors({})}},
         {as_tensor(to)});
}

// Of rows of three numbers within two rows, and so on: the same tensor is gone over at each depth.
void rows(GraphText& g, size_t depth, const std::string& from, const std::string& to) {
  TensorMeta meta = f32({2, 3}), one = f32({3});
  g.tensor(to, meta);
  GraphText inside;
  inside.tensor("row", one);
  inside.input(as_tensor("row"));
  inside.tensor("x", meta);
  inside.input(as_tensor("x"));
  std::string last = relu(inside, 0, "x");
  if (depth > 1) {
    rows(inside, depth - 1, last, "inner");
    last = "inner";
  }
  inside.tensor("added", meta);
  inside.node("torch.ops.aten.add.Tensor", {{"self", as_tensor("row")}, {"other", as_tensor(last)}},
              {as_tensor("added")});
  inside.tensor("sum", one);
  inside.node("torch.ops.aten.sum.dim_IntList", {{"self", as_tensor("added")}, {"dim", R"({"as_ints": [0]})"}},
              {as_tensor("sum")});
  inside.output(as_tensor("sum"));
  g.node("torch.ops.higher_order.map_impl",
         {{"", graph_arg("row", inside)}, {"", tensors({from})}, {"", tensors({from})}}, {as_tensor(to)});
}

void scan(GraphText& g, size_t depth, const std::string& from, const std::string& to) {
  TensorMeta meta = f32({2, 3}), one = f32({3});
  g.tensor(to, one);
  g.tensor(to + "_all", meta);
  g.tensor(to + "_first", one);
  g.node("torch.ops.aten.sum.dim_IntList", {{"self", as_tensor(from)}, {"dim", R"({"as_ints": [0]})"}},
         {as_tensor(to + "_first")});
  GraphText inside;
  for (const char* name : {"sum", "row"}) {
    inside.tensor(name, one);
    inside.input(as_tensor(name));
  }
  inside.tensor("x", meta);
  inside.input(as_tensor("x"));
  std::string last = relu(inside, 0, "x");
  std::string more = "row";
  if (depth > 1) {
    scan(inside, depth - 1, last, "inner");
    more = "inner";
  }
  inside.tensor("next", one);
  inside.node("torch.ops.aten.add.Tensor", {{"self", as_tensor("sum")}, {"other", as_tensor(more)}},
              {as_tensor("next")});
  inside.tensor("kept", one);
  inside.node("torch.ops.aten.relu.default", {{"self", as_tensor("next")}}, {as_tensor("kept")});
  inside.output(as_tensor("next"));
  inside.output(as_tensor("kept"));
  g.node("torch.ops.higher_order.scan",
         {{"", graph_arg("combine", inside)},
          {"", tensors({to + "_first"})},
          {"", tensors({from})},
          {"", tensors({from})}},
         {as_tensor(to), as_tensor(to + "_all")});
}

Make nested(Within within, const TensorMeta& result) {
  return [=](size_t n) {
    ProgramText p = start();
    within(p, n, "x", "y");
    std::string last = relu(p, 7, "y", result);
    p.user_output(last);
    return p.archive();
  };
}
Make one_after_another(Within within) {
  return [=](size_t n) {
    ProgramText p = start();
    std::string last = "x";
    for (size_t i = 0; i < n; ++i) {
      within(p, 1, last, text("y", i));
      last = text("y", i);
    }
    return finished(p, last);
  };
}

void read_and_lower(const std::string& bytes) { go_all_the_way(bytes, Until::loops); }
void read_and_differentiate(const std::string& bytes) { go_all_the_way(bytes, Until::gradients); }

// JSON ends at 200 levels, of which a graph within another takes eight. The backward of a graph computes the forward of
// what is within it again, and a file writes each graph where it is used: so much is n for each of n.
void expect_nested_linear(Within within, const TensorMeta& result) {
  std::vector<std::string> refusals;
  go_all_the_way(nested(within, result)(3), Until::gradients, &refusals);
  EXPECT_EQ(refusals, std::vector<std::string>());
  expect_linear(nested(within, result), 5, read_and_lower);
  expect_growth(nested(within, result), 5, read_and_differentiate, 8);
}

TEST(Nesting, choices) { expect_nested_linear(choice, f32({2, 3})); }
TEST(Nesting, loops) { expect_nested_linear(loop, f32({2, 3})); }
TEST(Nesting, rows) { expect_nested_linear(rows, f32({2, 3})); }
TEST(Nesting, scans) { expect_nested_linear(scan, f32({3})); }
TEST(Nesting, choices_one_after_another) { expect_linear(one_after_another(choice), 30); }
TEST(Nesting, loops_one_after_another) { expect_linear(one_after_another(loop), 30); }
TEST(Nesting, rows_one_after_another) { expect_linear(one_after_another(rows), 30); }

constexpr std::string_view predispatch = "torch._functorch.predispatch.";

// A batch within a batch, each over a dimension of its own.
std::string batches(size_t n) {
  ProgramText p;
  Sizes sizes(n, SymInt(2));
  p.user_input("x", f32(sizes));
  std::string last = "x";
  for (size_t i = 1; i <= n; ++i) {
    sizes.erase(0);
    std::string name = text("b", i);
    p.tensor(name, f32(sizes));
    p.node(text(predispatch, "_add_batch_dim"),
           {{"", as_tensor(last)}, {"", R"({"as_int": 0})"}, {"", text(R"({"as_int": )", i, "}")}}, {as_tensor(name)});
    last = name;
  }
  last = relu(p, 0, last, f32({}));
  for (size_t i = n; i >= 1; --i) {
    sizes.push_back(SymInt(2));
    std::string name = text("o", i);
    p.tensor(name, f32(sizes));
    p.node(text(predispatch, "_remove_batch_dim"),
           {{"", as_tensor(last)},
            {"", text(R"({"as_int": )", i, "}")},
            {"", R"({"as_int": 2})"},
            {"", R"({"as_int": 0})"}},
           {as_tensor(name)});
    last = name;
  }
  p.user_output(last);
  return p.archive();
}

// A tensor has a dimension for each batch that is left: n tensors of up to n.
TEST(Nesting, batches) {
  expect_growth(
      batches, 8, [](const std::string& bytes) { go_all_the_way(bytes); }, 16);
}

// A direction within a direction: what moves along both moves along each.
std::string directions(size_t n) {
  ProgramText p = start();
  TensorMeta meta = f32({2, 3});
  std::string last = "x";
  for (size_t i = 0; i < n; ++i) {
    std::string name = text("d", i);
    p.tensor(name, meta);
    p.node(text(predispatch, "_make_dual"),
           {{"", as_tensor(last)}, {"", as_tensor("x")}, {"", text(R"({"as_int": )", i, "}")}}, {as_tensor(name)});
    last = name;
  }
  last = relu(p, 0, last);
  for (size_t i = n; i-- > 0;) {
    p.tensor(text("p", i), meta);
    p.tensor(text("t", i), meta);
    p.node(text(predispatch, "_unpack_dual"), {{"", as_tensor(last)}, {"", text(R"({"as_int": )", i, "}")}},
           {as_tensor(text("p", i)), as_tensor(text("t", i))});
    last = text("t", i);
  }
  return finished(p, last);
}

TEST(Nesting, directions) { expect_linear(directions, 5, "_make_dual within another one is not supported yet"); }

}  // namespace
}  // namespace tenon::scaling
