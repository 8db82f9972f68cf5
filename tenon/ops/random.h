// Random numbers from explicit keys: a draw is a pure function of a state {seed, counter}, a stream and a position
// (Philox), so it can be repeated and does not depend on threads. PyTorch's random ops take their key from the scope
// they are called in.
#pragma once
#include <functional>

#include "tenon/rules/op_def.h"

namespace tenon {

/// Where random ops on this thread find their state while the scope lives; the calls within it are numbered as streams.
/// Without a scope they draw from the process's own state.
class RandomScope : ContextScope<RandomScope*> {
 public:
  explicit RandomScope(std::function<Tensor()> state)
      : ContextScope(&Context::random, this), state_(std::move(state)) {}

 private:
  friend Tensor ambient_random_state(int64_t* stream);
  std::function<Tensor()> state_;
  int64_t next_ = 0;
};

/// The state (i64[2]: seed, counter) for the next draw, and the stream it is to use.
Tensor ambient_random_state(int64_t* stream);
/// Starts the process's own state anew.
void seed_random(int64_t seed);
/// A state of its own.
Tensor random_state(int64_t seed, int64_t counter);

/// States of their own, i64[leading..., 2], drawn from the ambient one: for graphs that draw by themselves.
Tensor drawn_states(Sizes leading);

extern Handle random_uniform, random_normal, random_int, random_permutation;

/// Draws by random_uniform or random_normal from the ambient state.
Tensor draw(const Handle& distribution, const Sizes& sizes, DType dtype);
/// Uniform numbers in [0, 1), or normal ones, with the sizes, strides, dtype and device of another tensor; f32 where
/// its dtype is not a floating point one.
Tensor uniform_like(const Tensor& x);
Tensor normal_like(const Tensor& x);
/// Integers in [low, high) with the sizes, strides and dtype of another tensor.
Tensor integers_like(const Tensor& x, const CallArg& low, const CallArg& high);

}  // namespace tenon
