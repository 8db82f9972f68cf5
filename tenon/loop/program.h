// What operators lower to: stages (loads, scalar functions, reductions, stores) and a few anchors, over buffers.
#pragma once
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "tenon/loop/expr.h"
#include "tenon/loop/index_map.h"
#include "tenon/sym/range.h"
#include "tenon/tensor/arg.h"
#include "tenon/tensor/meta.h"

namespace tenon {
struct Op;  // graph/op.h
}

namespace tenon::loop {

constexpr BufferId no_buffer = ~0u;

enum class Role : uint8_t {
  input,    // the caller's; written only where the program updates it
  state,    // parameters, buffers and constants of the program
  derived,  // made from state by `on_state`
  output,   // the caller's, written by the program
  arena,    // memory of a session
};

struct Buffer {
  DType dtype = DType::f32;
  Sizes sizes, strides;
  Role role = Role::arena;
  size_t slot = 0;  // input, state: which input of the program. output: which output
  std::string name;
  BufferId view_of = no_buffer;  // it lies within that one, which is no view itself, from `offset` on
  SymInt offset = 0;             // in elements
  IndexMap map = {};             // a view: from the root's index to its own
};

enum class Combine : uint8_t {
  sum,
  product,
  min,
  max,
  any,
  all,
  argmin,
  argmax
};  // min, max: NaN wins; arg*: the first of equals

/// One reduction of a stage. argmin and argmax give the position within the reduced range, in row-major order.
struct Accumulator {
  Combine combine = Combine::sum;
  ExprId value = 0;
  Compute type = Compute::f32;
};

enum class Mode : uint8_t { set, add, mul, min, max };

struct Store {
  BufferId to = 0;
  SmallVector<ExprId, 6> at;
  ExprId value = 0;
  Mode mode = Mode::set;
  ExprId where = ~0u;  // nothing is stored where it is false
};

/// For every index of `domain`: reduce over `reduce`, then store. Loop indices 0.. are the domain's, then the
/// reduction's. The order of a reduction follows from its extents alone: up to 32 terms one after another; beyond,
/// chunks of 1024 terms in row-major order, 32 interleaved partial results in each, merged pairwise. So results depend
/// neither on threads nor on the run.
struct Stage {
  Sizes domain, reduce;
  std::vector<Accumulator> accumulators;
  std::vector<Store> stores;
};

/// A strided view of a buffer, as anchors take their operands.
struct Operand {
  BufferId buffer = 0;
  Sizes sizes, strides;
  SymInt offset = 0;
};

/// What is done to finished sums before they are stored: bias added, then the residual, then relu.
struct Epilogue {
  bool has_bias = false, has_residual = false, relu = false;
  Operand bias;      // one dimension: the columns of a gemm, the channels of a convolution's result
  Operand residual;  // the sizes of the result; it may be the result's own memory
};
/// out[b, m, n] = alpha * sum_k a[b, m, k] * b[b, k, n] + beta * out, then the epilogue. Three dimensions each; strides
/// may be 0. Packed: b's buffer holds what a Pack step made; b.sizes are the matrix's, b.strides[0] is the distance of
/// two packed matrices or 0, the other strides mean nothing.
struct Gemm {
  Operand a, b, out;
  double alpha = 1, beta = 0;
  bool packed = false;
  Epilogue epilogue = {};
};
enum class ConvPart : uint8_t { forward, input_gradient, weight_gradient };
/// Spatial lists have the rank of the convolution. x: [n, c, ...], w: [o, c/groups, ...] (transposed: [c, o/groups,
/// ...]), y: [n, o, ...]. Packed: w's buffer holds what a Pack step made; w.sizes are the weights', w.strides mean
/// nothing. Weights that are written are never packed, and their gradient has no epilogue.
struct Convolution {
  ConvPart part = ConvPart::forward;
  Operand x, w, y;
  Sizes stride, padding, dilation, output_padding;
  bool transposed = false;
  SymInt groups = 1;
  bool packed = false;
  Epilogue epilogue = {};
};
/// The right side of a Gemm or the weights of a Convolution in the kernel library's layout, for many uses: see
/// loop/pack.h, which makes one and tells its sizes.
struct Pack {
  Operand from;  // of a Gemm: [b, k, n]; of a Convolution: its weights
  BufferId to = 0;
  bool of_convolution = false;
  ConvPart part = ConvPart::forward;  // these as of the Convolution
  Sizes stride, padding, dilation;
  bool transposed = false;
  SymInt groups = 1;
};
/// q [b,h,l,e], k [b,hk,s,e], v [b,hk,s,ev]; mask broadcast to [b,h,l,s], boolean or additive.
struct Attention {
  Operand q, k, v, out, logsumexp;
  bool has_mask = false;
  Operand mask;
  bool causal = false;
  double scale = 1;
};
struct AttentionGradient {
  Operand grad, q, k, v, out, logsumexp, grad_q, grad_k, grad_v;
  bool has_mask = false;
  Operand mask;
  bool causal = false;
  double scale = 1;
};
/// Rows along `dim`, stable, NaN largest. indices is i64.
struct Sort {
  Operand in, values, indices;
  size_t dim = 0;
  bool descending = false;
};
struct TopK {
  Operand in, values, indices;
  size_t dim = 0;
  SymInt k = 0;
  bool largest = true, sorted = true;
};
enum class ScanKind : uint8_t { sum, product, max, min, logsumexp };
struct Scan {
  ScanKind kind = ScanKind::sum;
  Operand in, out;
  bool has_indices = false;
  Operand indices;
  size_t dim = 0;
};

/// A buffer as an argument or result of a call; none stands for an absent tensor.
struct BufferRef {
  BufferId id = no_buffer;
  explicit operator bool() const { return id != no_buffer; }
  bool operator==(const BufferRef&) const = default;
};
using StepArg = BasicArg<BufferRef>;

/// What no stage can do: factorizations, sizes that depend on data, numbers taken from tensors. The host function of
/// the operator is called. A result that is a number goes to a buffer of one element.
struct Call {
  const Op* op = nullptr;
  std::string name;                    // of the op
  std::vector<StepArg> args, results;  // as the schema has them
};
/// A symbol that only the run tells: the size of a buffer that a call made, or the element of one. A new segment of the
/// program begins behind it.
struct Bind {
  SymInt symbol = 0;
  BufferId from = 0;
  int dim = -1;  // -1: the element
};
/// What must hold from here on: a condition over symbols, or the one element of a buffer.
struct Check {
  SymInt condition = 0;
  BufferId tensor = no_buffer;
  std::string message;
};

/// Steps within a step. Its bodies are steps of the same program: what they take from outside they read from its
/// buffers, what they leave they write to its buffers. A buffer that only one body uses holds nothing between two runs
/// of that body. Symbols that a body binds are known within it alone, and bound anew by each run of it.
struct Body;
struct Control {
  enum class Kind : uint8_t {
    choose,   // runs body number `value`
    repeat,   // runs body 0, ends where `value` is 0, runs body 1, and again
    counted,  // runs body 0 `value` times, `symbol` being 0, 1, ...
  } kind = Kind::choose;
  SymInt value = 0;   // a number or a condition, of which true is 1; repeat: body 0 binds its symbols
  SymInt symbol = 0;  // counted
  std::vector<Body> bodies;
};

using Step = std::variant<Stage, Gemm, Convolution, Pack, Attention, AttentionGradient, Sort, TopK, Scan, Call, Bind,
                          Check, Control>;

struct Body {
  std::vector<Step> steps;
  std::vector<uint32_t> nodes;  // of each step: which entry of the program's `origins` it belongs to
};

/// What the caller hands in, by position: a tensor that must fit the meta, or a number.
struct Input {
  std::string name;
  TensorMeta meta;
  BufferId buffer = no_buffer;  // no_buffer: a number, `number` in terms of the symbols
  SymInt number = 0;
  enum class Type : uint8_t {
    tensor,
    integer,
    floating,
    boolean,
    constant
  } type = Type::tensor;  // constant: not looked at
  bool written = false;   // the program leaves new contents in it
};
/// What the program gives back, by position: a buffer, a number, or new contents of an input, which are already there.
struct Output {
  BufferId buffer = no_buffer;
  SymInt number = 0;
  size_t updates = ~size_t{0};  // the input
};

/// A program that can be executed. Steps that write inputs and state come last, behind every check.
struct Program {
  Arena arena;
  std::vector<Buffer> buffers;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  sym::Ranges ranges;          // of the symbols
  std::vector<Step> on_state;  // run whenever the state has changed: they write `derived` buffers
  std::vector<Step> steps;
  std::vector<uint32_t> nodes;       // of each step: which entry of `origins` it belongs to
  std::vector<std::string> origins;  // "%y = aten::add.Tensor", for messages
};

std::string to_text(const Program& program);
std::string to_text(const Program& program, ExprId expr);
/// Calls visit(buffer) for each buffer that a step reads, or writes; views as themselves, some perhaps more than once.
/// A control step reads and writes what the steps of its bodies do.
void for_each_read(const Program& program, const Step& step, const std::function<void(BufferId)>& visit);
void for_each_write(const Program& program, const Step& step, const std::function<void(BufferId)>& visit);

/// Calls visit(size) for each expression over symbols that a step is written with (extents, numbers in formulas, sizes
/// of operands); those of its buffers are not among them, nor are those within the bodies of a control step.
void for_each_size(const Program& program, const Step& step, const std::function<void(SymInt)>& visit);

/// Every load and store has an index per dimension, every id exists, control steps have their bodies. Throws
/// InternalError.
void verify(const Program& program);

}  // namespace tenon::loop

namespace tenon {
extern template struct BasicArg<loop::BufferRef>;
}
