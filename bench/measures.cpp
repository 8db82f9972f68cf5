// The measures that `make bench` prints, one a line: name, value, unit.
//   measures open FILE    opening and verifying a file, its weights mapped
//   measures eager        one operator call on ten elements, without and with gradients
//   measures run FILE     a prepared program on its sample inputs, in the interpreter
//   measures lower FILE   from the file to the lowered program
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "tenon/autograd/record.h"
#include "tenon/interp/eager.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/pipeline.h"

namespace tenon {
namespace {

template <class F>
double seconds(F&& f) {
  auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The median of several runs, after one that is not counted.
template <class F>
double median_seconds(int runs, F&& f) {
  f();
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) times.push_back(seconds(f));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void measure_open(const std::string& file) {
  std::printf("open %.3f ms\n", 1e3 * median_seconds(9, [&] { open_program(file); }));
}

void measure_eager() {
  interp::install();
  Tensor x = Tensor::empty(DType::f32, {10}), y = Tensor::empty(DType::f32, {10});
  std::fill_n(x.mutable_data<float>(), 10, 1.0f);
  std::fill_n(y.mutable_data<float>(), 10, 2.0f);
  constexpr int calls = 20000;
  double each = median_seconds(9,
                               [&] {
                                 for (int i = 0; i < calls; ++i) Tensor z = add(x, y);
                               }) /
                calls;
  std::printf("eager %.3f us\n", 1e6 * each);
  autograd::set_requires_grad(x, true);
  each = median_seconds(9,
                        [&] {
                          for (int i = 0; i < calls; ++i) autograd::call(add.op(), {x, y, CallArg(1)});
                        }) /
         calls;
  std::printf("eager_with_gradients %.3f us\n", 1e6 * each);
}

void measure_run(const std::string& file) {
  ExportedProgram program = open_program(file);
  std::vector<CallArg> inputs = program.samples()->leaves;
  Executables executables(program);
  std::unique_ptr<State> state = state_of(program);
  Session session(executables.for_inputs(inputs));
  session.run(*state, inputs);
  int runs = std::clamp(static_cast<int>(0.5 / seconds([&] { session.run(*state, inputs); })), 5, 20000);
  std::printf("run %.3f us\n", 1e6 * median_seconds(runs, [&] { session.run(*state, inputs); }));
}

void measure_lower(const std::string& file) {
  std::printf("lower %.3f ms\n", 1e3 * median_seconds(9, [&] {
                                   ExportedProgram program = open_program(file);
                                   Walk(program).executable();
                                 }));
}

int main(int argc, char** argv) {
  if (argc == 3 && !std::strcmp(argv[1], "open")) return measure_open(argv[2]), 0;
  if (argc == 2 && !std::strcmp(argv[1], "eager")) return measure_eager(), 0;
  if (argc == 3 && !std::strcmp(argv[1], "run")) return measure_run(argv[2]), 0;
  if (argc == 3 && !std::strcmp(argv[1], "lower")) return measure_lower(argv[2]), 0;
  std::fputs("usage: measures open FILE | eager | run FILE | lower FILE\n", stderr);
  return 2;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) { return tenon::main(argc, argv); }
