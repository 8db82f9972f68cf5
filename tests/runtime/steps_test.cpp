// The interpreter of tables, over kernels written here: control flow, views, instances, planning, functions of the
// host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "runtime/verify.h"
#include "tests/runtime/sample_call.h"

extern "C" tenon_status tn_program_open_tables(const void* tables, uint64_t size, const void* weights,
                                               void* const* functions, const tenon_options* options,
                                               tenon_program** program);

namespace tenon::package {
namespace {

int add(const tenon_args* a, int64_t lo, int64_t hi) {  // out = in + params[0]
  for (int64_t i = lo; i < hi; ++i)
    static_cast<float*>(a->buffers[1])[i] = static_cast<float*>(a->buffers[0])[i] + static_cast<float>(a->params[0]);
  return 0;
}
int slow_sum(const tenon_host_call* c, int64_t, int64_t) {  // result += sum of input
  const tenon_tensor& in = c->inputs[0];
  for (int64_t i = 0; i < in.sizes[0]; ++i)
    *static_cast<float*>(c->results[0].data) += static_cast<float*>(in.data)[i * in.strides[0]];
  return 0;
}
int sorted_copy(const tenon_host_call* c, int64_t, int64_t) {  // works in memory of its own; refuses NaN
  const tenon_tensor& in = c->inputs[0];
  auto* work = static_cast<float*>(c->work(c, static_cast<uint64_t>(in.sizes[0]) * sizeof(float)));
  if (!work || c->inputs[1].dtype != -1 || c->inputs[1].data) return TENON_KERNEL_MEMORY;
  for (int64_t i = 0; i < in.sizes[0]; ++i) {
    work[i] = static_cast<float*>(in.data)[i];
    if (work[i] != work[i]) {
      c->counts[0] = 2;
      c->counts[1] = i;
      double real = 0.5;
      std::memcpy(&c->counts[2], &real, sizeof real);
      return TENON_KERNEL_REFUSED;
    }
  }
  std::sort(work, work + in.sizes[0]);
  if (int status = c->allocate(c, 0, 1, in.sizes)) return status;
  std::copy(work, work + in.sizes[0], static_cast<float*>(c->results[0].data));
  return 0;
}
int add_and_call(const tenon_args* a, int64_t lo, int64_t hi) {  // add, then the epilogue on what was written
  add(a, lo, hi);
  alignas(TENON_ALIGNMENT) int64_t columns[2] = {0, 1};
  const tenon_args args{a->epilogue->buffers, a->epilogue->params, columns, nullptr};
  return a->epilogue->kernel(&args, lo, hi);
}
int broken(const tenon_args*, int64_t, int64_t) { return 16; }
int singular(const tenon_host_call*, int64_t, int64_t) { return TENON_KERNEL_ARITHMETIC; }

/// A program over functions of this file, by name.
class Steps : public testing::Test {
 protected:
  Tables t{"tenon tests"};
  const Id main = Tables::main;
  Id kernel_add = t.function("add"), host_sum = t.function("slow_sum"), kernel_broken = t.function("broken"),
     host_singular = t.function("singular"), host_sorted = t.function("sorted_copy"),
     kernel_fused = t.function("add_and_call");
  std::vector<std::byte> bytes;
  tenon_program* program = nullptr;
  tenon_state* state = nullptr;
  tenon_session* session = nullptr;

  Instance adds(Id from, Id to, Expr by, Expr extent, Expr grain = 2) {
    return {.args = {from, written(to)}, .params = {by}, .extent = extent, .grain = grain};
  }
  std::string open() {
    bytes = t.bytes();
    void* functions[] = {reinterpret_cast<void*>(add),         reinterpret_cast<void*>(slow_sum),
                         reinterpret_cast<void*>(broken),      reinterpret_cast<void*>(singular),
                         reinterpret_cast<void*>(sorted_copy), reinterpret_cast<void*>(add_and_call)};
    if (tn_program_open_tables(bytes.data(), bytes.size(), nullptr, functions, nullptr, &program) != TENON_OK)
      return tenon_last_error();
    EXPECT_EQ(tenon_state_create(program, &state), TENON_OK);
    EXPECT_EQ(tenon_session_create(program, &session), TENON_OK);
    return "";
  }
  std::string run(const std::vector<tenon_tensor>& inputs, std::vector<tenon_tensor> outputs) {
    tenon_status status =
        tenon_session_run(session, state, inputs.data(), inputs.size(), outputs.data(), outputs.size());
    return status == TENON_OK ? "" : tenon_last_error();
  }
  void TearDown() override {
    tenon_session_destroy(session);
    tenon_state_destroy(state);
    tenon_program_close(program);
  }
};

TEST_F(Steps, a_kernel_with_many_instances) {
  Id x = t.input({.name = "x", .sizes = {100}}), y = t.output({.name = "y", .sizes = {100}});
  std::vector<Instance> instances;
  for (int64_t i = 0; i < 20; ++i) {
    Id from = t.view(x, {.name = "part", .sizes = {5}}, i * 20), to = t.view(y, {.name = "part", .sizes = {5}}, i * 20);
    instances.push_back(adds(from, to, i * 100, i % 7 == 3 ? 0 : 5, 2));  // some are empty
  }
  t.kernel(main, {.function = kernel_add, .instances = instances});
  ASSERT_EQ(open(), "");
  std::vector<float> in(100, 1), out(100, -1);
  ASSERT_EQ(run({rt::tensor(in.data(), {100})}, {rt::tensor(out.data(), {100})}), "");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(out[i], i / 5 % 7 == 3 ? -1 : i / 5 * 100 + 1) << i;
}

TEST_F(Steps, a_kernel_calls_its_epilogue_on_its_blocks) {
  Id x = t.input({.name = "x", .sizes = {100}}), y = t.output({.name = "y", .sizes = {100}});
  std::vector<Instance> first, second;
  for (int64_t i = 0; i < 4; ++i) {
    Id from = t.view(x, {.name = "part", .sizes = {25}}, i * 100),
       to = t.view(y, {.name = "part", .sizes = {25}}, i * 100);
    first.push_back(adds(from, to, i * 100, 25, 3));
    second.push_back(adds(to, to, i * 1000, 1));
  }
  t.fused(main, {.function = kernel_fused, .instances = first}, {.function = kernel_add, .instances = second});
  ASSERT_EQ(open(), "");
  std::vector<float> in(100, 1), out(100, -1);
  for (int again = 0; again < 2; ++again) {
    ASSERT_EQ(run({rt::tensor(in.data(), {100})}, {rt::tensor(out.data(), {100})}), "");
    for (int i = 0; i < 100; ++i) EXPECT_EQ(out[i], i / 25 * 1100 + 1) << i;
  }
}

TEST_F(Steps, an_epilogue_for_other_instances_is_refused) {
  Id x = t.input({.name = "x", .sizes = {4}}), y = t.output({.name = "y", .sizes = {4}});
  t.fused(main, {.function = kernel_fused, .instances = {adds(x, y, 1, 4)}}, {.function = kernel_add});
  EXPECT_NE(open().find("an epilogue for another number of instances"), std::string::npos);
}

TEST_F(Steps, a_branch_is_chosen_by_data) {
  Id flag = t.input({.name = "flag", .dtype = TENON_BOOL, .sizes = {}});
  Id x = t.input({.name = "x", .sizes = {3}}), y = t.output({.name = "y", .sizes = {3}});
  Id chosen = t.symbol("flag", 0, 1);
  Id no = t.body(), yes = t.body();
  t.kernel(no, {.function = kernel_add, .instances = {adds(x, y, 10, 3)}});
  t.kernel(yes, {.function = kernel_add, .instances = {adds(x, y, 20, 3)}});
  t.bind_element(main, chosen, flag, 0);
  t.choose(main, Expr::symbol(chosen), {no, yes});
  ASSERT_EQ(open(), "");
  for (bool value : {false, true}) {
    float in[3] = {1, 2, 3}, out[3];
    ASSERT_EQ(run({rt::tensor(&value, std::vector<int64_t>{}), rt::tensor(in, {3})}, {rt::tensor(out, {3})}), "");
    EXPECT_EQ(out[2], value ? 23 : 13);
  }
}

TEST_F(Steps, a_scan_over_views_that_move_with_a_counter) {
  // y[i] = y[i - 1] + x[i] summed over its row; the carry stays in one buffer.
  Id n = t.symbol("n", 0, 100), i = t.symbol("i", 0, 100);
  Id x = t.input({.name = "x", .sizes = {Expr::symbol(n), 3}}), y = t.output({.name = "y", .sizes = {Expr::symbol(n)}});
  t.entry_size(n, x, 0);
  Id segment = t.segment();
  Id carry = t.arena({.name = "carry", .sizes = {1}}, segment);
  Id row = t.view(x, {.name = "row", .sizes = {3}}, Expr::symbol(i) * 12),
     item = t.view(y, {.name = "item", .sizes = {1}}, Expr::symbol(i) * 4);
  Id body = t.body();
  t.call(body, {.function = host_sum, .inputs = {row}, .results = {carry}});
  t.copy(body, carry, item);
  t.plan(main, segment);
  t.store(main, carry, 0, Expr::real(0.5));
  t.counted(main, i, Expr::symbol(n), body);
  ASSERT_EQ(open(), "");
  for (int64_t count : {4, 0, 9}) {
    std::vector<float> in(count * 3 + 1), out(count + 1, -7);
    std::iota(in.begin(), in.end(), 0.0f);
    ASSERT_EQ(run({rt::tensor(in.data(), {count, 3})}, {rt::tensor(out.data(), {count})}), "");
    float sum = 0.5;
    for (int64_t k = 0; k < count; ++k) {
      sum += in[k * 3] + in[k * 3 + 1] + in[k * 3 + 2];
      EXPECT_EQ(out[k], sum);
    }
    EXPECT_EQ(out[count], -7);
  }
}

TEST_F(Steps, a_loop_ends_when_its_condition_does) {
  Id x = t.input({.name = "x", .sizes = {1}}), y = t.output({.name = "y", .sizes = {1}});
  Id value = t.symbol("value", INT64_MIN, INT64_MAX, TENON_REAL);
  Id condition = t.body(), loop = t.body();
  t.bind_element(condition, value, y, 0);
  t.kernel(loop, {.function = kernel_add, .instances = {{.args = {y, written(y)}, .params = {3}, .extent = 1}}});
  t.copy(main, x, y);
  t.repeat_while(main, condition, less(Expr::symbol(value, TENON_REAL), Expr::real(10)), loop);
  ASSERT_EQ(open(), "");
  float in = 2, out = 0;
  ASSERT_EQ(run({rt::tensor(&in, {1})}, {rt::tensor(&out, {1})}), "");
  EXPECT_EQ(out, 11);
  in = 50;
  ASSERT_EQ(run({rt::tensor(&in, {1})}, {rt::tensor(&out, {1})}), "");
  EXPECT_EQ(out, 50);
}

TEST_F(Steps, buffers_that_do_not_live_together_share_memory) {
  Id n = t.symbol("n", 1, 1 << 20);
  Expr size = Expr::symbol(n);
  Id x = t.input({.name = "x", .sizes = {size}}), y = t.output({.name = "y", .sizes = {size}});
  t.entry_size(n, x, 0);
  Id segment = t.segment();
  std::vector<Id> chain = {x};
  for (uint32_t i = 0; i < 10; ++i)
    chain.push_back(t.arena({.name = "b", .sizes = {size}, .first = i, .last = i + 1}, segment));
  chain.push_back(y);
  t.plan(main, segment);
  for (size_t i = 0; i + 1 < chain.size(); ++i)
    t.kernel(main, {.function = kernel_add, .instances = {adds(chain[i], chain[i + 1], int64_t(1) << i, size, 64)}});
  ASSERT_EQ(open(), "");
  for (int64_t count : {1000, 16, 5000, 1000}) {
    std::vector<float> in(count, 1), out(count);
    ASSERT_EQ(run({rt::tensor(in.data(), {count})}, {rt::tensor(out.data(), {count})}), "");
    for (float value : out) ASSERT_EQ(value, 2048);
  }
  EXPECT_LE(tenon_session_memory(session), 2 * (5000 * 4 + 64u));
}

TEST_F(Steps, more_combinations_of_sizes_than_plans_are_kept) {
  Id n = t.symbol("n", 1, 1000);
  Expr size = Expr::symbol(n);
  Id x = t.input({.name = "x", .sizes = {size}}), y = t.output({.name = "y", .sizes = {size}});
  t.entry_size(n, x, 0);
  Id segment = t.segment();
  Id a = t.arena({.name = "a", .sizes = {size}, .first = 0, .last = 1}, segment),
     b = t.arena({.name = "b", .sizes = {size * 2}, .first = 1, .last = 2}, segment);
  Id front = t.view(b, {.name = "front", .sizes = {size}}, size * 4);
  t.plan(main, segment);
  t.kernel(main, {.function = kernel_add, .instances = {adds(x, a, 1, size, 8)}});
  t.kernel(main, {.function = kernel_add, .instances = {adds(a, front, 1, size, 8)}});
  t.kernel(main, {.function = kernel_add, .instances = {adds(front, y, 1, size, 8)}});
  ASSERT_EQ(open(), "");
  for (int round = 0; round < 3; ++round)
    for (int64_t count = 1; count < 40; ++count) {
      std::vector<float> in(count, 1), out(count);
      ASSERT_EQ(run({rt::tensor(in.data(), {count})}, {rt::tensor(out.data(), {count})}), "");
      for (float value : out) ASSERT_EQ(value, 4);
    }
}

TEST_F(Steps, a_placement_of_the_compilers_is_kept) {
  Id x = t.input({.name = "x", .sizes = {4}}), y = t.output({.name = "y", .sizes = {4}});
  Id segment = t.segment();
  Id a = t.arena({.name = "a", .sizes = {4}, .offset = 4096}, segment);
  t.plan(main, segment);
  t.kernel(main, {.function = kernel_add, .instances = {adds(x, a, 1, 4)}});
  t.copy(main, a, y);
  ASSERT_EQ(open(), "");
  float in[4] = {1, 2, 3, 4}, out[4];
  ASSERT_EQ(run({rt::tensor(in, {4})}, {rt::tensor(out, {4})}), "");
  EXPECT_EQ(out[3], 5);
  EXPECT_EQ(tenon_session_memory(session), 4096u + 64);
}

TEST_F(Steps, an_input_that_is_written_in_place) {
  Id x = t.input({.name = "x", .sizes = {4}}, true);
  Id y = t.output({.name = "y", .sizes = {4}});
  t.copy(main, x, y);
  t.kernel(main, {.function = kernel_add, .instances = {adds(x, x, 5, 4)}});
  ASSERT_EQ(open(), "");
  float in[8] = {1, 2, 3, 4}, out[4];
  ASSERT_EQ(run({rt::tensor(in, {4})}, {rt::tensor(out, {4})}), "");
  EXPECT_EQ(in[3], 9);
  EXPECT_EQ(out[3], 4);
  EXPECT_EQ(run({rt::tensor(in, {4})}, {rt::tensor(in + 2, {4})}),
            "input 'x' is written, but overlaps output 'y'; hand in memory of its own");
}

TEST_F(Steps, a_donated_input_becomes_the_output) {
  Id x = t.input({.name = "x", .sizes = {4}}), y = t.output({.name = "y", .sizes = {4}}, 0);
  t.kernel(main, {.function = kernel_add, .instances = {adds(x, y, 1, 4)}});
  ASSERT_EQ(open(), "");
  float memory[5] = {1, 2, 3, 4, 5};
  ASSERT_EQ(run({rt::tensor(memory, {4})}, {rt::tensor(memory, {4})}), "");
  EXPECT_EQ(memory[0], 2);
  EXPECT_NE(run({rt::tensor(memory, {4})}, {rt::tensor(memory + 1, {4})}), "");
}

TEST_F(Steps, overlap_is_found_among_many_tensors) {
  std::vector<Id> inputs, outputs;
  for (int i = 0; i < 50; ++i) inputs.push_back(t.input({.name = "in" + std::to_string(i), .sizes = {4}}, i == 20));
  for (int i = 0; i < 50; ++i) outputs.push_back(t.output({.name = "out" + std::to_string(i), .sizes = {4}}));
  for (int i = 0; i < 50; ++i) t.copy(main, inputs[i], outputs[i]);
  ASSERT_EQ(open(), "");
  std::vector<float> memory(1000);
  std::vector<tenon_tensor> in, out;
  for (int i = 0; i < 50; ++i) {
    in.push_back(rt::tensor(memory.data() + (i * 37 % 100) * 4, {4}));
    out.push_back(rt::tensor(memory.data() + ((i * 37 + 1850) % 100) * 4 + 500, {4}));
  }
  EXPECT_EQ(run(in, out), "");
  in[3].data = in[4].data;  // two that are only read may be the same
  EXPECT_EQ(run(in, out), "");
  in[7].data = out[31].data;
  EXPECT_EQ(run(in, out), "output 'out31' is written, but overlaps input 'in7'; hand in memory of its own");
  in[7].data = static_cast<float*>(in[20].data) - 1;
  EXPECT_EQ(run(in, out).substr(0, 34), "input 'in20' is written, but overl");
}

TEST_F(Steps, strides_are_bound) {
  Id s = t.symbol("stride", 1, 100);
  Id x = t.input({.name = "x", .sizes = {3}, .strides = std::vector<Expr>{Expr::symbol(s)}});
  Id y = t.output({.name = "y", .sizes = {}});
  t.entry_stride(s, x, 0);
  t.store(main, y, 0, to_real(0));
  t.call(main, {.function = host_sum, .inputs = {x}, .results = {y}});
  ASSERT_EQ(open(), "");
  float in[7] = {1, 0, 0, 2, 0, 0, 4}, out = -1;
  tenon_tensor strided = rt::tensor(in, {3});
  strided.strides[0] = 3;
  ASSERT_EQ(run({strided}, {rt::tensor(&out, std::vector<int64_t>{})}), "");
  EXPECT_EQ(out, 7);
}

TEST_F(Steps, a_view_outside_its_buffer_is_refused) {
  Id n = t.symbol("n", 0, 100);
  Id x = t.input({.name = "x", .sizes = {Expr::symbol(n)}}), y = t.output({.name = "y", .sizes = {4}});
  t.entry_size(n, x, 0);
  Id part = t.view(x, {.name = "part", .sizes = {4}}, 8);
  t.copy(main, part, y);
  ASSERT_EQ(open(), "");
  float in[6] = {1, 2, 3, 4, 5, 6}, out[4];
  EXPECT_EQ(run({rt::tensor(in, {6})}, {rt::tensor(out, {4})}), "");
  EXPECT_EQ(out[0], 3);
  EXPECT_EQ(run({rt::tensor(in, {5})}, {rt::tensor(out, {4})}),
            "a view of 16 bytes from 8 lies outside its buffer of 20 bytes");
}

TEST_F(Steps, sizes_that_overflow_are_errors) {
  Id n = t.symbol("n", 0, INT64_MAX);
  Id x = t.input({.name = "x", .dtype = TENON_I64, .sizes = {}}),
     y = t.output({.name = "y", .sizes = {Expr::symbol(n) * 4}, .flags = TENON_BUFFER_DEFERRED});
  t.bind_element(main, n, x, 0);
  t.make(main, y);
  ASSERT_EQ(open(), "");
  int64_t in = INT64_MAX / 2;
  EXPECT_EQ(run({rt::tensor(&in, std::vector<int64_t>{})}, {tenon_tensor{}}),
            "a size has no value: an integer beyond 64 bits");
  in = INT64_MAX / 4;
  EXPECT_EQ(run({rt::tensor(&in, std::vector<int64_t>{})}, {tenon_tensor{}}), "output 'y' would be too large");
  in = -1;
  EXPECT_EQ(run({rt::tensor(&in, std::vector<int64_t>{})}, {tenon_tensor{}}),
            "an element of 'x' is -1, but n may be 0 to 9223372036854775807");
}

TEST_F(Steps, failing_steps_are_named_or_their_functions) {
  Id x = t.input({.name = "x", .sizes = {4}}), y = t.output({.name = "y", .sizes = {4}});
  Id which = t.input({.name = "which", .dtype = TENON_I32, .sizes = {}}), symbol = t.symbol("which", 0, 1);
  Id first = t.body(), second = t.body();
  t.kernel(first, {.function = kernel_broken, .instances = {adds(x, y, 1, 4)}});
  t.call(second, {.function = host_singular, .inputs = {x}, .results = {y}}, {.name = "the inverse"});
  t.bind_element(main, symbol, which, 0);
  t.choose(main, Expr::symbol(symbol), {first, second});
  ASSERT_EQ(open(), "");
  float in[4] = {}, out[4];
  int32_t value = 0;
  auto call = [&] {
    return run({rt::tensor(in, {4}), rt::tensor(&value, std::vector<int64_t>{})}, {rt::tensor(out, {4})});
  };
  EXPECT_EQ(call(), "broken failed with status 16");
  value = 1;
  EXPECT_EQ(call(),
            "the inverse: there is no result for these numbers (a division by zero, a matrix without an inverse)");
}

TEST_F(Steps, a_call_has_memory_to_work_in_absent_inputs_and_sentences_of_its_own) {
  Id x = t.input({.name = "x", .sizes = {4}}), y = t.output({.name = "y", .sizes = {4}});
  t.call(main, {.function = host_sorted,
                .inputs = {x, package::none},
                .results = {y},
                .errors = {"never", "op: element {} is no number; {real} of them are, {} more"}});
  ASSERT_EQ(open(), "");
  float in[4] = {3, 1, 4, 2}, out[4];
  for (int round = 0; round < 2; ++round) ASSERT_EQ(run({rt::tensor(in, {4})}, {rt::tensor(out, {4})}), "");
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[3], 4);
  EXPECT_EQ(tenon_session_memory(session), 16u);
  in[2] = NAN;
  EXPECT_EQ(run({rt::tensor(in, {4})}, {rt::tensor(out, {4})}), "op: element 2 is no number; 0.5 of them are, 0 more");
}

TEST_F(Steps, a_result_that_has_memory_keeps_its_sizes) {
  Id n = t.symbol("n", 0, 100);
  Id x = t.input({.name = "x", .sizes = {Expr::symbol(n)}}), y = t.output({.name = "y", .sizes = {4}});
  t.entry_size(n, x, 0);
  t.call(main, {.function = host_sorted, .inputs = {x, package::none}, .results = {y}});
  ASSERT_EQ(open(), "");
  float in[5] = {3, 1, 4, 2, 0}, out[4];
  EXPECT_EQ(run({rt::tensor(in, {4})}, {rt::tensor(out, {4})}), "");
  EXPECT_EQ(run({rt::tensor(in, {5})}, {rt::tensor(out, {4})}),
            "sorted_copy: there is no result for these numbers (a division by zero, a matrix without an inverse)");
}

TEST(External, a_function_of_the_hosts_is_called_by_name) {
  Tables t("tenon tests");
  Id x = t.input({.name = "x", .sizes = {3}}), y = t.output({.name = "y", .sizes = {}});
  t.store(Tables::main, y, 0, Expr::real(1));
  t.call(Tables::main, {.function = t.function("mylib::sum", true), .inputs = {x}, .results = {y}});
  std::vector<std::byte> bytes = artifact_bytes({.tables = t}, {});
  tenon_program* made = nullptr;
  EXPECT_EQ(tenon_program_open_memory(bytes.data(), bytes.size(), nullptr, &made), TENON_UNSUPPORTED);
  EXPECT_STREQ(
      tenon_last_error(),
      "the artifact calls 'mylib::sum', which is not among the functions handed in: in C those of tenon_options, on "
      "the command line those of --ops");
  tenon_named_function function{"mylib::sum", slow_sum};
  tenon_options options{.struct_size = sizeof options, .functions = &function, .function_count = 1};
  auto program = rt::Program::open_memory(bytes.data(), bytes.size(), &options);
  rt::State state(program);
  rt::Session session(program);
  float in[3] = {1, 2, 3};
  EXPECT_EQ(*session.run(state, {rt::tensor(in, {3})})[0].data<float>(), 7);
}

TEST_F(Steps, a_session_runs_one_call_at_a_time) {
  Id x = t.input({.name = "x", .sizes = {3}}), y = t.output({.name = "y", .sizes = {}});
  t.call(main, {.function = host_sum, .inputs = {x}, .results = {y}});
  ASSERT_EQ(open(), "");
  static tenon_session* again;
  static tenon_status inner;
  again = session;
  tenon_session_observe(
      session,
      [](void* context, const char*, tenon_step_kind, uint64_t, double, double) {
        inner = tenon_session_run(again, static_cast<tenon_state*>(context), nullptr, 0, nullptr, 0);
      },
      state);
  float in[3] = {1, 2, 3}, out = 0;
  EXPECT_EQ(run({rt::tensor(in, {3})}, {rt::tensor(&out, std::vector<int64_t>{})}), "");
  EXPECT_EQ(inner, TENON_BUSY);
}

}  // namespace
}  // namespace tenon::package
