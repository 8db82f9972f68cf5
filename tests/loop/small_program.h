// A program written by hand, for the tests of this folder: y = x + w in a loop, then a product of matrices.
#pragma once
#include "tenon/loop/program.h"

namespace tenon::loop {

struct SmallProgram {
  Program program;
  BufferId x, w, sum, out;
  SmallProgram() {
    x = buffer("x", {2, 3}, Role::input);
    w = buffer("w", {3}, Role::state);
    sum = buffer("sum", {2, 3}, Role::arena);
    out = buffer("out", {2, 2}, Role::output);
    Stage stage;
    stage.domain = {2, 3};
    ExprId i = index(0), j = index(1);
    Expr total = Expr(&program.arena, load(x, {i, j})) + Expr(&program.arena, load(w, {j}));
    stage.stores.push_back({.to = sum, .at = {i, j}, .value = total.id});
    program.steps.emplace_back(stage);
    program.steps.emplace_back(Gemm{
        .a = {sum, {1, 2, 3}, {0, 3, 1}, 0}, .b = {x, {1, 3, 2}, {0, 1, 3}, 0}, .out = {out, {1, 2, 2}, {0, 2, 1}, 0}});
    program.nodes = {0, 1};
    program.origins = {"%sum = aten::add.Tensor", "%out = aten::mm"};
    program.inputs.push_back({.name = "x", .meta = make_meta(DType::f32, {2, 3}), .buffer = x});
    program.inputs.push_back({.name = "w", .meta = make_meta(DType::f32, {3}), .buffer = w});
    program.outputs.push_back({.buffer = out});
  }
  BufferId buffer(const char* name, Sizes sizes, Role role) {
    TensorMeta meta = make_meta(DType::f32, sizes);
    program.buffers.push_back(
        {.dtype = DType::f32, .sizes = meta.sizes, .strides = meta.strides, .role = role, .name = name});
    return static_cast<BufferId>(program.buffers.size() - 1);
  }
  ExprId index(int64_t loop) { return program.arena.add({.fn = Fn::index, .type = Compute::i64, .integer = loop}); }
  ExprId load(BufferId from, std::initializer_list<ExprId> at, ExprId guard = ~0u) {
    ExprNode node{.fn = Fn::load, .type = Compute::f32, .buffer = from, .guard = guard};
    for (ExprId e : at) node.args.push_back(e);
    return program.arena.add(node);
  }
};

}  // namespace tenon::loop
