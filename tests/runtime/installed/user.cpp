// A user's program in C++17.
#include <cstdio>
#include <tenon/runtime.hpp>

int main(int argc, char** argv) {
  namespace rt = tenon::runtime;
  try {
    auto program = rt::Program::open(argc > 1 ? argv[1] : "");
    rt::State state(program);
    rt::Session session(program);
    std::vector<float> x = {1, 2, 3, 4};
    std::vector<int64_t> ids = {2};
    auto results = session.run(state, {rt::tensor(x.data(), {1, 4}), rt::tensor(ids.data(), {1})});
    float sum = 0;
    for (size_t i = 0; i < results[0].elements(); ++i) sum += results[0].data<float>()[i];
    if (sum != *results[1].data<float>()) return 1;
    rt::Program::open("/nowhere");
  } catch (const rt::Error& error) {
    if (error.status() == TENON_IO) return std::puts("ok"), 0;
    std::puts(error.what());
  }
  return 1;
}
