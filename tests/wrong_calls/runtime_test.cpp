// A wrong call of every function of the C interface: each that can fail ends in its status and a sentence, the others
// in an answer that says there is nothing. A function of the header that has no row fails the test.
#include <gtest/gtest.h>
#include <tenon/compile.h>
#include <tenon/export.h>
#include <tenon/operators.h>
#include <tenon/runtime.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>

namespace {

using tenon::Tensor;
using Bytes = std::vector<std::byte>;

// y = x w, with x: f32[n, 3] for n from 3 to 8 and w: f32[3, 2].
const tenon::ExportedProgram& product() {
  static const tenon::ExportedProgram program = [] {
    Tensor w = tenon::ones({3, 2});
    auto forward = [w](const std::vector<Tensor>& in) { return std::vector<Tensor>{tenon::matmul(in.at(0), w)}; };
    return tenon::export_program(forward, {tenon::ones({4, 3})},
                                 {.input_names = {"x"},
                                  .dynamic_shapes = {{"x", {{0, tenon::Dim("n", {.min = 3, .max = 8})}}}},
                                  .parameters = {{"w", w}}});
  }();
  return program;
}
const Bytes& updatable() {
  static const Bytes bytes = tenon::compile(product(), {.updatable = true});
  return bytes;
}

struct Handles {
  tenon_program* program = nullptr;
  tenon_state* state = nullptr;
  tenon_session* session = nullptr;
  explicit Handles(const Bytes& bytes) {
    EXPECT_EQ(tenon_program_open_memory(bytes.data(), bytes.size(), nullptr, &program), TENON_OK) << tenon_last_error();
    EXPECT_EQ(tenon_state_create(program, &state), TENON_OK);
    EXPECT_EQ(tenon_session_create(program, &session), TENON_OK);
  }
  ~Handles() {
    tenon_session_destroy(session);
    tenon_state_destroy(state);
    tenon_program_close(program);
  }
  Handles(const Handles&) = delete;
};
const Handles& good() {
  static const Handles handles(updatable());
  return handles;
}

tenon_tensor rows_of(const float* data, int64_t rows, int64_t columns) {
  tenon_tensor out{};
  out.data = const_cast<float*>(data);  // inputs are only read
  out.dtype = TENON_F32;
  out.rank = 2;
  out.sizes[0] = rows, out.sizes[1] = columns;
  out.strides[0] = columns, out.strides[1] = 1;
  return out;
}
const float numbers[64] = {};

struct OneRun {
  tenon_tensor x = rows_of(numbers, 4, 3), y{};
  tenon_tensor *inputs = &x, *outputs = &y;
  size_t input_count = 1, output_count = 1;
  tenon_session* session = good().session;
  tenon_state* state = good().state;
};
using Change = std::function<void(OneRun&)>;
tenon_status run(const Change& wrong) {
  OneRun call;
  wrong(call);
  tenon_status status =
      tenon_session_run(call.session, call.state, call.inputs, call.input_count, call.outputs, call.output_count);
  if (status == TENON_OK) tenon_output_release(&call.y);
  return status;
}
tenon_status describe(const Change& wrong) {
  OneRun call;
  wrong(call);
  return tenon_session_describe_outputs(call.session, call.inputs, call.input_count, call.outputs, call.output_count);
}

tenon_status open_with(const std::function<void(tenon_options&)>& wrong) {
  tenon_options options{};
  options.struct_size = sizeof options;
  wrong(options);
  tenon_program* program = nullptr;
  tenon_status status = tenon_program_open_memory(updatable().data(), updatable().size(), &options, &program);
  tenon_program_close(program);
  return status;
}
tenon_status open_bytes(const Bytes& bytes) {
  tenon_program* program = nullptr;
  tenon_status status = tenon_program_open_memory(bytes.data(), bytes.size(), nullptr, &program);
  tenon_program_close(program);
  return status;
}
tenon_status open_file(const char* path) {
  tenon_program* program = nullptr;
  tenon_status status = tenon_program_open(path, nullptr, &program);
  tenon_program_close(program);
  return status;
}
Bytes of_version(uint32_t major, uint32_t minor) {
  Bytes bytes = updatable();
  const char* magic = TENON_MAGIC;
  auto same = [](std::byte a, char b) { return a == static_cast<std::byte>(b); };
  auto at = std::search(bytes.begin(), bytes.end(), magic, magic + 8, same);
  const uint32_t version[2] = {major, minor};
  std::memcpy(&*at + 8, version, sizeof version);
  return bytes;
}

tenon_tensor weights(const std::function<void(tenon_tensor&)>& wrong = nullptr) {
  static float data[6];
  tenon_tensor out = rows_of(data, 3, 2);
  if (wrong) wrong(out);
  return out;
}
tenon_status get(const char* name, tenon_tensor tensor) { return tenon_state_get(good().state, name, &tensor); }
tenon_status set(const char* name, tenon_tensor tensor) { return tenon_state_set(good().state, name, &tensor); }

struct Call {
  const char* function;
  tenon_status expected;
  std::function<tenon_status()> call;
};
std::vector<Call> failing() {
  constexpr tenon_status wrong = TENON_INVALID_ARGUMENT;
  tenon_program* program = good().program;
  tenon_state* state = good().state;
  std::vector<Call> out = {
      {"tenon_pool_create", wrong, [] { return tenon_pool_create(2, nullptr); }},
      {"tenon_pool_create", wrong,
       [] {
         tenon_pool* pool = nullptr;
         return tenon_pool_create(-1, &pool);
       }},
      {"tenon_program_open", wrong, [] { return tenon_program_open("x.so", nullptr, nullptr); }},
      {"tenon_program_open", wrong, [] { return open_file(nullptr); }},
      {"tenon_program_open", TENON_IO, [] { return open_file("/nowhere/at/all.so"); }},
      {"tenon_program_open", TENON_IO, [] { return open_file("/"); }},
      {"tenon_program_open", TENON_IO, [] { return open_file(""); }},
      {"tenon_program_open", TENON_INVALID_FILE, [] { return open_file(TENON_RUNTIME_HEADER); }},
      {"tenon_program_open_memory", wrong, [] { return tenon_program_open_memory(numbers, 9, nullptr, nullptr); }},
      {"tenon_program_open_memory", TENON_INVALID_FILE, [] { return open_bytes(Bytes(100)); }},
      {"tenon_program_open_memory", wrong, [] { return open_bytes({}); }},
      {"tenon_program_open_memory", TENON_INVALID_FILE,
       [] { return open_bytes(Bytes(updatable().begin(), updatable().begin() + 2000)); }},
      {"tenon_program_open_memory", TENON_UNSUPPORTED, [] { return open_bytes(of_version(TENON_ABI_MAJOR + 1, 0)); }},
      {"tenon_program_open_memory", TENON_UNSUPPORTED,
       [] { return open_bytes(of_version(TENON_ABI_MAJOR, TENON_ABI_MINOR + 1)); }},
      {"tenon_program_open_memory", wrong, [] { return open_with([](auto& o) { o.struct_size = 0; }); }},
      {"tenon_program_open_memory", wrong, [] { return open_with([](auto& o) { o.function_count = 1; }); }},
      {"tenon_program_open_memory", wrong,
       [] {
         tenon_named_function nameless{};
         return open_with([&](auto& o) { o.functions = &nameless, o.function_count = 1; });
       }},
      {"tenon_program_open_memory", wrong,
       [] {
         tenon_allocator half{};
         return open_with([&](auto& o) { o.allocator = &half; });
       }},
      {"tenon_program_open_memory", wrong,
       [] {
         tenon_pool* gone = nullptr;
         tenon_pool_create(1, &gone);
         tenon_pool_destroy(gone);
         return open_with([&](auto& o) { o.pool = gone; });
       }},
      {"tenon_state_create", wrong, [=] { return tenon_state_create(program, nullptr); }},
      {"tenon_state_create", wrong,
       [] {
         tenon_state* made = nullptr;
         return tenon_state_create(nullptr, &made);
       }},
      {"tenon_state_reset", wrong, [] { return tenon_state_reset(nullptr); }},
      {"tenon_state_assign", wrong, [=] { return tenon_state_assign(state, nullptr); }},
      {"tenon_state_assign", wrong, [=] { return tenon_state_assign(nullptr, state); }},
      {"tenon_state_assign", wrong,
       [=] {
         Handles another(updatable());
         return tenon_state_assign(state, another.state);
       }},
      {"tenon_state_seed", wrong, [] { return tenon_state_seed(nullptr, 1); }},
      {"tenon_state_seed", wrong, [=] { return tenon_state_seed(state, 1); }},  // it draws nothing
      {"tenon_state_save", wrong, [=] { return tenon_state_save(state, nullptr); }},
      {"tenon_state_save", wrong, [] { return tenon_state_save(nullptr, "/tmp/x"); }},
      {"tenon_state_save", TENON_IO, [=] { return tenon_state_save(state, "/nowhere/at/all.safetensors"); }},
      {"tenon_state_load", wrong, [=] { return tenon_state_load(state, nullptr); }},
      {"tenon_state_load", wrong, [] { return tenon_state_load(nullptr, "/tmp/x"); }},
      {"tenon_state_load", TENON_IO, [=] { return tenon_state_load(state, "/nowhere/at/all.safetensors"); }},
      {"tenon_state_load", TENON_INVALID_FILE, [=] { return tenon_state_load(state, TENON_RUNTIME_HEADER); }},
      {"tenon_session_create", wrong, [=] { return tenon_session_create(program, nullptr); }},
      {"tenon_session_create", wrong,
       [] {
         tenon_session* made = nullptr;
         return tenon_session_create(nullptr, &made);
       }},
  };
  auto info = [&](const char* function, auto call, auto filled) {
    out.push_back({function, wrong, [=] { return call(program, 0, nullptr); }});
    out.push_back({function, wrong, [=]() mutable { return call(nullptr, 0, &filled); }});
    out.push_back({function, wrong, [=]() mutable { return call(program, 9, &filled); }});
  };
  info("tenon_program_input_info", tenon_program_input_info, tenon_value_info{});
  info("tenon_program_output_info", tenon_program_output_info, tenon_value_info{});
  info("tenon_program_state_info", tenon_program_state_info, tenon_state_info{});

  struct Entry {
    const char* function;
    tenon_status (*call)(const char*, tenon_tensor);
  };
  for (Entry entry : {Entry{"tenon_state_get", get}, Entry{"tenon_state_set", set}}) {
    auto call = entry.call;
    out.push_back({entry.function, wrong, [=] { return call("nobody", weights()); }});
    out.push_back({entry.function, wrong, [=] { return call(nullptr, weights()); }});
    out.push_back({entry.function, wrong, [=] { return call("w", tenon_tensor{}); }});
    for (auto change : {+[](tenon_tensor& t) { t.dtype = TENON_F64; }, +[](tenon_tensor& t) { t.dtype = 99; },
                        +[](tenon_tensor& t) { t.rank = 1; }, +[](tenon_tensor& t) { t.rank = -1; },
                        +[](tenon_tensor& t) { t.rank = 99; }, +[](tenon_tensor& t) { t.sizes[0] = 4; },
                        +[](tenon_tensor& t) { t.sizes[1] = -2; }, +[](tenon_tensor& t) { t.strides[0] = 3; },
                        +[](tenon_tensor& t) { t.data = nullptr; }})
      out.push_back({entry.function, wrong, [=] { return call("w", weights(change)); }});
  }
  out.push_back({"tenon_state_get", wrong, [] {
                   tenon_tensor w = weights();
                   return tenon_state_get(nullptr, "w", &w);
                 }});
  out.push_back({"tenon_state_get", wrong, [=] { return tenon_state_get(state, "w", nullptr); }});
  out.push_back({"tenon_state_set", wrong, [=] { return tenon_state_set(state, "w", nullptr); }});
  out.push_back({"tenon_state_set", wrong, [] {  // only packed forms of it are there
                   static const Bytes frozen = tenon::compile(product());
                   Handles handles(frozen);
                   tenon_tensor w = weights();
                   return tenon_state_set(handles.state, "w", &w);
                 }});

  const std::vector<Change> wrong_inputs = {
      [](OneRun& r) { r.session = nullptr; },
      [](OneRun& r) { r.inputs = nullptr; },
      [](OneRun& r) { r.outputs = nullptr; },
      [](OneRun& r) { r.input_count = 0; },
      [](OneRun& r) { r.input_count = 2; },
      [](OneRun& r) { r.output_count = 0; },
      [](OneRun& r) { r.x.data = nullptr; },
      [](OneRun& r) { r.x.dtype = TENON_F64; },
      [](OneRun& r) { r.x.dtype = -1; },
      [](OneRun& r) { r.x.rank = 3; },
      [](OneRun& r) { r.x.rank = -1; },
      [](OneRun& r) { r.x.rank = 1000; },
      [](OneRun& r) { r.x.sizes[1] = 4; },
      [](OneRun& r) { r.x.sizes[0] = 9; },
      [](OneRun& r) { r.x.sizes[0] = 2; },
      [](OneRun& r) { r.x.sizes[0] = -4; },
      [](OneRun& r) { r.x.sizes[0] = INT64_MAX; },
      [](OneRun& r) { r.x.strides[1] = 2; },
      [](OneRun& r) { r.x.data = static_cast<char*>(r.x.data) + 1; },
  };
  for (const Change& change : wrong_inputs) {
    out.push_back({"tenon_session_run", wrong, [=] { return run(change); }});
    out.push_back({"tenon_session_describe_outputs", wrong, [=] { return describe(change); }});
  }
  static float result[64];
  for (Change change : std::vector<Change>{
           [](OneRun& r) { r.state = nullptr; }, [](OneRun& r) { r.y = rows_of(result, 3, 2); },
           [](OneRun& r) { r.y = rows_of(result, 4, 3); }, [](OneRun& r) { r.y = rows_of(numbers, 4, 2); },
           [](OneRun& r) {
             r.y = rows_of(result, 4, 2);
             r.y.dtype = TENON_I64;
           }})
    out.push_back({"tenon_session_run", wrong, [=] { return run(change); }});
  out.push_back({"tenon_session_run", wrong, [] {
                   Handles another(updatable());
                   return run([&](OneRun& r) { r.state = another.state; });
                 }});
  return out;
}

// What cannot fail says that there is nothing, or does nothing.
const std::vector<std::pair<const char*, std::function<bool()>>> answering = {
    {"tenon_runtime_version", [] { return std::strlen(tenon_runtime_version()) >= 5; }},
    {"tenon_last_error", [] { return tenon_last_error() != nullptr; }},
    {"tenon_status_name", [] { return std::strlen(tenon_status_name(static_cast<tenon_status>(15))) > 0; }},
    {"tenon_dtype_size", [] { return tenon_dtype_size(-1) == 0 && tenon_dtype_size(99) == 0; }},
    {"tenon_dtype_name", [] { return std::strcmp(tenon_dtype_name(-1), "?") == 0; }},
    {"tenon_pool_destroy", [] { return tenon_pool_destroy(nullptr), true; }},
    {"tenon_pool_threads", [] { return tenon_pool_threads(nullptr) == 0; }},
    {"tenon_program_close", [] { return tenon_program_close(nullptr), true; }},
    {"tenon_program_input_count", [] { return tenon_program_input_count(nullptr) == 0; }},
    {"tenon_program_output_count", [] { return tenon_program_output_count(nullptr) == 0; }},
    {"tenon_program_state_count", [] { return tenon_program_state_count(nullptr) == 0; }},
    {"tenon_program_target", [] { return std::strcmp(tenon_program_target(nullptr), "?") == 0; }},
    {"tenon_program_weights",
     [] {
       size_t size = 7;
       bool none = tenon_program_weights(nullptr, &size) == nullptr && size == 0;
       return none && tenon_program_weights(good().program, nullptr) != nullptr;
     }},
    {"tenon_program_metadata",
     [] {
       return !tenon_program_metadata(nullptr, "k") && !tenon_program_metadata(good().program, nullptr) &&
              !tenon_program_metadata(good().program, "nobody wrote this");
     }},
    {"tenon_state_destroy", [] { return tenon_state_destroy(nullptr), true; }},
    {"tenon_state_version", [] { return tenon_state_version(nullptr) == 0; }},
    {"tenon_session_destroy", [] { return tenon_session_destroy(nullptr), true; }},
    {"tenon_session_set_output_allocator",
     [] { return tenon_session_set_output_allocator(nullptr, nullptr, nullptr), true; }},
    {"tenon_output_release",
     [] {
       tenon_tensor empty{};
       tenon_output_release(nullptr);
       tenon_output_release(&empty);
       return true;
     }},
    {"tenon_session_observe", [] { return tenon_session_observe(nullptr, nullptr, nullptr), true; }},
    {"tenon_session_memory", [] { return tenon_session_memory(nullptr) == 0; }},
};

TEST(WrongCallsOfC, HaveARowForEveryFunctionOfTheHeader) {
  std::ifstream file(TENON_RUNTIME_HEADER);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::set<std::string> declared, known;
  std::regex declaration(R"(TENON_API\s[^;(]*?(tenon_\w+)\()");
  for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at) declared.insert((*at)[1]);
  for (const Call& call : failing()) known.insert(call.function);
  for (const auto& [function, answer] : answering) known.insert(function);
  EXPECT_GT(declared.size(), 35u);
  EXPECT_EQ(known, declared);
}

TEST(WrongCallsOfC, EndInAStatusAndASentence) {
  std::map<std::string, int> number;
  for (const Call& call : failing()) {
    SCOPED_TRACE(std::string(call.function) + ", call " + std::to_string(number[call.function]++));
    EXPECT_EQ(call.call(), call.expected) << tenon_last_error();
    EXPECT_GT(std::strlen(tenon_last_error()), 15u);
    EXPECT_EQ(std::strchr(tenon_last_error(), '\n'), nullptr);
  }
  EXPECT_EQ(run([](OneRun&) {}), TENON_OK) << "after all of them: " << tenon_last_error();
}

TEST(WrongCallsOfC, WithoutAStatusSayThatThereIsNothing) {
  for (const auto& [function, answer] : answering) EXPECT_TRUE(answer()) << function;
}

TEST(WrongCallsOfC, AClosedProgramStaysForItsStatesAndSessions) {
  Handles handles(updatable());
  tenon_program_close(handles.program);
  handles.program = nullptr;
  EXPECT_EQ(run([&](OneRun& r) { r.session = handles.session, r.state = handles.state; }), TENON_OK)
      << tenon_last_error();
}

}  // namespace
