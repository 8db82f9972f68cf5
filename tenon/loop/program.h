// What operators lower to: stages (loads, scalar functions, reductions, stores) and a few anchors, over buffers.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "tenon/loop/expr.h"
#include "tenon/tensor/meta.h"

namespace tenon::loop {

constexpr BufferId no_buffer = ~0u;

enum class Role : uint8_t { input, output, temporary };

struct Buffer {
  DType dtype = DType::f32;
  Sizes sizes, strides;
  Role role = Role::temporary;
  size_t slot = 0;  // input, output: which tensor of the call, or which value of the graph
  std::string name;
  BufferId view_of = no_buffer;  // it lies within that one, which is no view itself, from `offset` on
  SymInt offset = 0;             // in elements
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
/// chunks of 1024 terms in row-major order, 16 interleaved partial results in each, merged pairwise. So results depend
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

/// out[b, m, n] = alpha * sum_k a[b, m, k] * c[b, k, n] + beta * out. Three dimensions each; strides may be 0.
struct Gemm {
  Operand a, b, out;
  double alpha = 1, beta = 0;
};
enum class ConvPart : uint8_t { forward, input_gradient, weight_gradient };
/// Spatial lists have the rank of the convolution. x: [n, c, ...], w: [o, c/groups, ...] (transposed: [c, o/groups,
/// ...]), y: [n, o, ...].
struct Convolution {
  ConvPart part = ConvPart::forward;
  Operand x, w, y;
  Sizes stride, padding, dilation, output_padding;
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

/// What no stage can do: sizes that depend on data, numbers taken from tensors. The operator itself is called.
struct Call {
  std::string op;
  std::vector<BufferId> reads, writes;
};

using Step = std::variant<Stage, Gemm, Convolution, Attention, AttentionGradient, Sort, TopK, Scan, Call>;

struct Program {
  Arena arena;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
};

std::string to_text(const Program& program);
std::string to_text(const Program& program, ExprId expr);
/// Every load and store has an index per dimension, every id exists. Throws InternalError.
void verify(const Program& program);

}  // namespace tenon::loop
