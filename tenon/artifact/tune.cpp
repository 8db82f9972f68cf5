#include "tenon/artifact/tune.h"

#include <algorithm>
#include <chrono>

#include "runtime/include/tenon/runtime.h"
#include "tenon/artifact/in_process.h"
#include "tenon/artifact/runtime_tensor.h"
#include "tenon/loop/pack.h"

namespace tenon::artifact {
namespace {

using Clock = std::chrono::steady_clock;
using loop::BufferId;
using loop::ConvMethod;

constexpr size_t most_copies = 32, most_weight_bytes = size_t{128} << 20;  // of weights, for one measurement
constexpr double most_seconds = 0.05;                                      // for one convolution
constexpr size_t least_rounds = 5, most_rounds = 400;
/// How much faster, as a share, another method must be than the first.
constexpr double worth_it = 0.97;

bool is_static(const loop::Operand& o) {
  auto known = [](SymInt e) { return e.is_int() && e.as_int() >= 0; };
  return known(o.offset) && std::all_of(o.sizes.begin(), o.sizes.end(), known) &&
         std::all_of(o.strides.begin(), o.strides.end(), known);
}

int64_t reach(const loop::Operand& o) {
  int64_t last = o.offset.as_int();
  for (size_t d = 0; d < o.sizes.size(); ++d) last += (o.sizes[d].as_int() - 1) * o.strides[d].as_int();
  return last + 1;
}

/// What the state of a program takes, in bytes.
size_t state_bytes(const loop::Program& program) {
  size_t out = 0;
  for (const loop::Buffer& b : program.buffers) {
    if (b.role != loop::Role::state || b.view_of != loop::no_buffer) continue;
    int64_t elements = 1;
    for (SymInt e : b.sizes) elements *= e.is_int() ? e.as_int() : 1;
    out += static_cast<size_t>(elements) * item_size(b.dtype);
  }
  return out;
}

/// One convolution on packed weights as a program that takes all its operands.
class Candidate {
 public:
  Candidate(const loop::Program& whole, const loop::Convolution& given, ConvMethod method) : method_(method) {
    loop::Convolution c = given;
    const bool forward = c.part == loop::ConvPart::forward;
    const DType dtype = whole.buffers[c.y.buffer].dtype;
    const loop::Pack pack = loop::pack_of(c, 0);
    const Sizes packed = method == ConvMethod::winograd ? loop::transformed_sizes(pack) : loop::packed_sizes(pack);
    c = loop::with_packed(std::move(c), input("w", dtype, packed));
    take(forward ? c.x : c.y, dtype);
    if (c.epilogue.has_bias) take(c.epilogue.bias, dtype);
    if (c.epilogue.has_residual) take(c.epilogue.residual, dtype);
    loop::Operand& to = forward ? c.y : c.x;
    to.buffer = add("out", dtype, {reach(to)}, loop::Role::output, 0);
    program_.outputs.push_back({.buffer = to.buffer});
    program_.steps.emplace_back(std::move(c));
    program_.nodes = {0};
    program_.origins = {"a convolution"};
  }
  Candidate(const Candidate&) = delete;
  ~Candidate() {
    tenon_session_destroy(session_);
    tenon_state_destroy(state_);
    if (opened_.program != nullptr) tenon_program_close(opened_.program);
  }

  void open(size_t all_weights) {
    opened_ = open_in_process(plan::make_tables(program_, {}, {}), {}, Execution::native);
    check(tenon_state_create(opened_.program, &state_));
    check(tenon_session_create(opened_.program, &session_));
    for (const loop::Input& i : program_.inputs) tensors_.push_back(filled(i.meta));
    TensorMeta meta = meta_of_buffer(program_.buffers[program_.outputs[0].buffer]);
    out_ = filled(meta);
    const size_t each = std::max<size_t>(reach_bytes(program_.inputs[0].meta), 1);
    const size_t wanted = std::min(all_weights, most_weight_bytes) / each;
    weights_.push_back(tensors_[0]);
    while (weights_.size() < std::min(wanted, most_copies)) weights_.push_back(filled(program_.inputs[0].meta));
  }
  /// Seconds of one run.
  double run() {
    std::vector<tenon_tensor> in, out = {as_runtime(out_)};
    tensors_[0] = weights_[next_++ % weights_.size()];
    for (const Tensor& t : tensors_) in.push_back(as_runtime(t));
    const auto begin = Clock::now();
    check(tenon_session_run(session_, state_, in.data(), in.size(), out.data(), out.size()));
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  ConvMethod method() const { return method_; }

 private:
  static TensorMeta meta_of_buffer(const loop::Buffer& b) {
    TensorMeta meta;
    meta.dtype = b.dtype;
    meta.sizes = b.sizes;
    meta.strides = b.strides;
    return meta;
  }
  /// Numbers of moderate size: what is computed with them is neither zero nor denormal.
  static Tensor filled(const TensorMeta& meta) {
    Tensor t = Tensor::empty(meta);
    auto* to = reinterpret_cast<float*>(t.storage()->mutable_data());
    std::fill_n(to, t.storage()->size() / sizeof(float), 0.01f);
    return t;
  }
  BufferId add(std::string name, DType dtype, Sizes sizes, loop::Role role, size_t slot) {
    loop::Buffer b;
    b.dtype = dtype;
    b.strides = Sizes(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) b.strides[d - 1] = b.strides[d] * sizes[d];
    b.sizes = std::move(sizes);
    b.role = role;
    b.slot = slot;
    b.name = std::move(name);
    program_.buffers.push_back(std::move(b));
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }
  BufferId input(const char* name, DType dtype, Sizes sizes) {
    const BufferId id = add(name, dtype, std::move(sizes), loop::Role::input, program_.inputs.size());
    loop::Input in;
    in.name = name;
    in.meta = meta_of_buffer(program_.buffers[id]);
    in.buffer = id;
    program_.inputs.push_back(std::move(in));
    return id;
  }
  void take(loop::Operand& o, DType dtype) { o.buffer = input("operand", dtype, {reach(o)}); }

  ConvMethod method_;
  loop::Program program_;
  InProcess opened_;
  tenon_state* state_ = nullptr;
  tenon_session* session_ = nullptr;
  std::vector<Tensor> tensors_, weights_;
  Tensor out_;
  size_t next_ = 0;
};

}  // namespace

std::optional<ConvMethod> Tuner::choose(const loop::Program& program, const loop::Convolution& c) {
  std::vector<const loop::Operand*> operands = {&c.x, &c.w, &c.y};
  if (c.epilogue.has_bias) operands.push_back(&c.epilogue.bias);
  if (c.epilogue.has_residual) operands.push_back(&c.epilogue.residual);
  if (best_execution() != Execution::native || program.buffers[c.y.buffer].dtype != DType::f32) return std::nullopt;
  std::string key = text(static_cast<int>(c.part), c.stride, c.padding, c.dilation, c.epilogue.relu);
  for (const loop::Operand* o : operands) {
    if (!is_static(*o)) return std::nullopt;
    key += text(" ", o->sizes, o->strides);
  }
  if (auto found = known_.find(key); found != known_.end()) return found->second;

  // The first is what costs would choose: it stays unless another one is clearly faster.
  const ConvMethod first = loop::method_of(program, c, {.weight = 0});
  const ConvMethod second = first == ConvMethod::direct ? ConvMethod::winograd : ConvMethod::direct;
  Candidate candidates[2] = {{program, c, first}, {program, c, second}};
  double least[2];
  const size_t bytes = state_bytes(program);
  for (size_t i = 0; i < 2; ++i) {
    candidates[i].open(bytes);
    candidates[i].run();
    least[i] = candidates[i].run();
  }
  const auto begin = Clock::now();
  for (size_t round = 0; round < most_rounds; ++round) {
    const double passed = std::chrono::duration<double>(Clock::now() - begin).count();
    if (round >= least_rounds && passed > most_seconds) break;
    for (size_t i = 0; i < 2; ++i) least[i] = std::min(least[i], candidates[i].run());
  }
  const ConvMethod chosen = least[1] < least[0] * worth_it ? second : first;
  const size_t direct = first == ConvMethod::direct ? 0 : 1;
  measured_.push_back({text(c.w.sizes, " at ", c.y.sizes), {least[direct] * 1e6, least[1 - direct] * 1e6}, chosen});
  known_.emplace(std::move(key), chosen);
  return chosen;
}

}  // namespace tenon::artifact
