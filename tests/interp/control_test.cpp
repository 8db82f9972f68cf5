// Control steps of programs written by hand.
#include <gtest/gtest.h>

#include "tenon/interp/program_runner.h"
#include "tests/text_program.h"

namespace tenon::interp {
namespace {

using loop::BufferId;
using loop::Control;
using loop::Expr;
using loop::Role;

struct Handmade {
  loop::Program program;
  std::vector<loop::Step>* steps = &program.steps;  // where the next one goes
  SymInt i = SymInt::symbol("u0", {.nonnegative = true});

  BufferId buffer(std::string name, DType dtype, Sizes sizes, Role role = Role::arena) {
    TensorMeta meta = make_meta(dtype, sizes);
    program.buffers.push_back({dtype, meta.sizes, meta.strides, role, program.outputs.size(), name});
    auto id = static_cast<BufferId>(program.buffers.size() - 1);
    if (role == Role::input) {
      program.buffers[id].slot = program.inputs.size();
      program.inputs.push_back({.name = name, .meta = meta, .buffer = id});
    }
    if (role == Role::output) program.outputs.push_back({.buffer = id});
    return id;
  }
  // Row `at` of a matrix.
  BufferId row(BufferId of, SymInt at) {
    loop::Buffer b = program.buffers[of];
    b.view_of = of;
    b.offset = at * b.strides[0];
    b.sizes = {b.sizes[1]};
    b.strides = {b.strides[1]};
    b.name += "_row";
    program.buffers.push_back(b);
    return static_cast<BufferId>(program.buffers.size() - 1);
  }
  Expr at(BufferId b) {
    loop::ExprNode load{.fn = loop::Fn::load, .type = loop::compute_of(program.buffers[b].dtype), .buffer = b};
    for (size_t d = 0; d < program.buffers[b].sizes.size(); ++d) load.args.push_back(index(d));
    return Expr(&program.arena, program.arena.add(load));
  }
  loop::ExprId index(size_t d) {
    return program.arena.add({.fn = loop::Fn::index, .type = loop::Compute::i64, .integer = static_cast<int64_t>(d)});
  }
  Expr number(double value) { return loop::constant(program.arena, value, loop::Compute::f32); }
  void set(BufferId to, Expr value) {
    loop::Stage stage{.domain = program.buffers[to].sizes};
    loop::Store store{.to = to, .value = value.id};
    for (size_t d = 0; d < stage.domain.size(); ++d) store.at.push_back(index(d));
    stage.stores.push_back(store);
    steps->emplace_back(stage);
  }
  void bind(SymInt symbol, BufferId from) { steps->emplace_back(loop::Bind{.symbol = symbol, .from = from}); }
  template <class... Make>
  void control(Control::Kind kind, SymInt value, Make... make) {
    Control c{.kind = kind, .value = value, .symbol = i, .bodies = {}};
    (
        [&] {
          loop::Body body;
          auto* outer = std::exchange(steps, &body.steps);
          make();
          steps = outer;
          body.nodes.assign(body.steps.size(), 0);
          c.bodies.push_back(std::move(body));
        }(),
        ...);
    steps->emplace_back(std::move(c));
  }
  Tensor run(std::vector<CallArg> inputs) {
    program.nodes.assign(program.steps.size(), 0);
    program.origins = {"by hand"};
    loop::verify(program);
    if (!runner) runner = std::make_unique<ProgramRunner>(program);
    return runner->run(inputs, {})[0].as<Tensor>();
  }
  std::unique_ptr<ProgramRunner> runner;
};

using Floats = std::vector<float>;

TEST(Control, AChoiceRunsOneOfItsBodies) {
  Handmade h;
  BufferId x = h.buffer("x", DType::f32, {2}, Role::input), which = h.buffer("which", DType::i64, {}, Role::input);
  BufferId result = h.buffer("result", DType::f32, {2}), y = h.buffer("y", DType::f32, {2}, Role::output);
  h.bind(h.i, which);
  h.control(
      Control::Kind::choose, h.i, [&] { h.set(result, h.at(x) + 10.0); }, [&] { h.set(result, h.at(x) * 2.0); },
      [&] {
        BufferId own = h.buffer("own", DType::f32, {2});
        h.set(own, h.at(x) - 1.0);
        h.set(result, h.at(own) * h.at(own));
      });
  h.set(y, h.at(result));
  Tensor in = floats({2}, {1, 4});
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(values_of(h.run({in, integers({}, {0})})), (Floats{11, 14}));
    EXPECT_EQ(values_of(h.run({in, integers({}, {1})})), (Floats{2, 8}));
    EXPECT_EQ(values_of(h.run({in, integers({}, {2})})), (Floats{0, 9}));
  }
}

TEST(Control, ALoopRunsWhileItsConditionHolds) {
  Handmade h;
  BufferId x = h.buffer("x", DType::f32, {}, Role::input), y = h.buffer("y", DType::f32, {}, Role::output);
  BufferId carried = h.buffer("carried", DType::f32, {}), small = h.buffer("small", DType::boolean, {});
  h.set(carried, h.at(x));
  h.control(
      Control::Kind::repeat, h.i,
      [&] {
        h.set(small, h.at(carried) < 100.0);
        h.bind(h.i, small);
      },
      [&] {
        BufferId twice = h.buffer("twice", DType::f32, {});
        h.set(twice, h.at(carried) * 2.0);
        h.set(carried, h.at(twice));
      });
  h.set(y, h.at(carried));
  EXPECT_EQ(values_of(h.run({floats({}, {3})})), Floats{192});
  EXPECT_EQ(values_of(h.run({floats({}, {100})})), Floats{100});  // not even once
  EXPECT_EQ(values_of(h.run({floats({}, {1})})), Floats{128});
}

TEST(Control, ACountedLoopReadsAndWritesRowsByItsCount) {
  Handmade h;
  SymInt n = SymInt::symbol("s0", {.nonnegative = true});
  BufferId x = h.buffer("x", DType::f32, {n, 2}, Role::input), y = h.buffer("y", DType::f32, {n, 2}, Role::output);
  BufferId sum = h.buffer("sum", DType::f32, {2});
  h.set(sum, h.number(0));
  h.control(Control::Kind::counted, n, [&] {
    BufferId from = h.row(x, h.i), to = h.row(y, n - 1 - h.i), next = h.buffer("next", DType::f32, {2});
    h.set(next, h.at(sum) + h.at(from));
    h.set(to, h.at(next));
    h.set(sum, h.at(next));
  });
  EXPECT_EQ(values_of(h.run({counting({3, 2})})), (Floats{6, 9, 2, 4, 0, 1}));
  EXPECT_EQ(values_of(h.run({counting({1, 2})})), (Floats{0, 1}));
  EXPECT_EQ(values_of(h.run({counting({0, 2})})), Floats{});
  EXPECT_EQ(values_of(h.run({counting({3, 2})})), (Floats{6, 9, 2, 4, 0, 1}));
}

TEST(Control, BodiesNestAndKeepWhatLiesOutsideOfThem) {
  Handmade h;
  SymInt inner = SymInt::symbol("u1", {.nonnegative = true}), odd = SymInt::symbol("u2", {.nonnegative = true});
  BufferId x = h.buffer("x", DType::f32, {3, 2}, Role::input), y = h.buffer("y", DType::f32, {2}, Role::output);
  BufferId sum = h.buffer("sum", DType::f32, {2}), flag = h.buffer("flag", DType::boolean, {});
  h.set(sum, h.number(0));
  h.control(Control::Kind::counted, 3, [&] {
    BufferId kept = h.buffer("kept", DType::f32, {2}), from = h.row(x, h.i);
    h.set(kept, h.at(from));
    SymInt outer = std::exchange(h.i, inner);
    h.control(Control::Kind::counted, 2, [&] {
      BufferId scratch = h.buffer("scratch", DType::f32, {2});
      h.set(scratch, h.at(kept) + 1.0);
      h.set(kept, h.at(scratch));
    });
    h.i = outer;
    h.set(flag, loop::size_expr(h.program.arena, h.i) == int64_t{1});
    h.bind(odd, flag);
    h.control(
        Control::Kind::choose, odd, [&] { h.set(sum, h.at(sum) + h.at(kept)); },
        [&] { h.set(sum, h.at(sum) - h.at(kept)); });
  });
  h.set(y, h.at(sum));
  // rows 0 1, 2 3, 4 5, each plus 2: (2 3) - (4 5) + (6 7)
  EXPECT_EQ(values_of(h.run({counting({3, 2})})), (Floats{4, 5}));
}

TEST(Control, ARowBeyondTheMatrixIsAnError) {
  Handmade h;
  BufferId x = h.buffer("x", DType::f32, {3, 2}, Role::input), y = h.buffer("y", DType::f32, {2}, Role::output);
  h.control(Control::Kind::counted, 4, [&] { h.set(y, h.at(h.row(x, h.i))); });
  EXPECT_THROW(h.run({counting({3, 2})}), Error);
}

}  // namespace
}  // namespace tenon::interp
