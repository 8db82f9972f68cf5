// What the parts of library_calls share: each kind of anchor has its calls_of, in a file of its family.
#pragma once
#include "tenon/plan/library.h"
#include "tenon/tensor/dtype.h"

namespace tenon::plan {

LibraryCalls calls_of(const loop::Program& program, const loop::Gemm& anchor);
LibraryCalls calls_of(const loop::Program& program, const loop::Convolution& anchor);
std::optional<ResultBlocks> blocks_of(const loop::Program& program, const loop::Gemm& anchor);
std::optional<ResultBlocks> blocks_of(const loop::Program& program, const loop::Convolution& anchor);
LibraryCalls calls_of(const loop::Program& program, const loop::Pack& anchor);
LibraryCalls calls_of(const loop::Program& program, const loop::Attention& anchor);
LibraryCalls calls_of(const loop::Program& program, const loop::AttentionGradient& anchor);
LibraryCalls calls_of(const loop::Program& program, const loop::Sort& anchor);
LibraryCalls calls_of(const loop::Program& program, const loop::TopK& anchor);
LibraryCalls calls_of(const loop::Program& program, const loop::Scan& anchor);

/// What an anchor's operands must satisfy. What is certain is left out, what certainly fails is an Error.
class Checks {
 public:
  Checks(const loop::Program& program, LibraryCalls& calls) : program_(program), calls_(calls) {}

  void holds(SymInt condition, const std::string& message);
  void same(SymInt a, SymInt b, std::string_view what);
  void same(const loop::Operand& operand, const Sizes& sizes, std::string_view what);
  /// Its elements are of this dtype and lie within its buffer, whatever a program made of it.
  void operand(const loop::Operand& operand, DType dtype, std::string_view what);
  const loop::Program& program() const { return program_; }
  const loop::Buffer& buffer(const loop::Operand& operand) const { return program_.buffers[operand.buffer]; }
  DType dtype(const loop::Operand& operand) const { return program_.buffers[operand.buffer].dtype; }
  /// "_f32", "_f64", "_i64": how names of the library's functions end for operands of this dtype.
  std::string_view suffix(const loop::Operand& operand) const;
  /// The same where only floating point numbers make sense.
  std::string_view float_suffix(const loop::Operand& operand) const;

 private:
  const loop::Program& program_;
  LibraryCalls& calls_;
};

inline LibraryArg read(const loop::Operand& operand) { return {operand.buffer, 0, false}; }
inline LibraryArg written(const loop::Operand& operand) { return {operand.buffer, 0, true}; }
inline LibraryArg temporary(size_t which, bool written) { return {loop::no_buffer, which, written}; }

/// A params struct of kernels/ in terms of symbols: every field by its name, those not set are 0.
template <class Params>
class ParamsOf {
 public:
  ParamsOf() : words_(sizeof(Params) / 8) {}
  void set(int64_t Params::*field, SymInt value) { words_[index(field)] = {value}; }
  void set(int64_t Params::*field, bool value) { words_[index(field)] = {SymInt(value ? 1 : 0)}; }
  void set(double Params::*field, double value) { words_[index(field)] = loop::Param::real(value); }
  /// An array, from element `first` on.
  template <class Base, size_t n>
  void set(int64_t (Base::*field)[n], const Sizes& values, size_t first = 0) {
    int64_t(Params::*own)[n] = field;
    for (size_t i = 0; i < values.size() && first + i < n; ++i) words_[index(own) + first + i] = {values[i]};
  }
  /// What follows the struct.
  void append(SymInt value) { words_.push_back({value}); }
  void append(const Sizes& values) {
    for (SymInt value : values) append(value);
  }
  std::vector<loop::Param> words() && { return std::move(words_); }

 private:
  template <class Field>
  static size_t index(Field Params::*field) {
    static const Params some{};
    return static_cast<size_t>(reinterpret_cast<const char*>(&(some.*field)) - reinterpret_cast<const char*>(&some)) /
           8;
  }
  std::vector<loop::Param> words_;
};

}  // namespace tenon::plan
