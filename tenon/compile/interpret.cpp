#include "tenon/compile/interpret.h"

#include "tenon/base/error.h"
#include "tenon/compile/evaluate.h"

namespace tenon::compile {
namespace {

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, std::span<const Span> buffers, std::span<const int64_t> params, Span scratch,
              int64_t lo, int64_t hi)
      : kernel_(kernel), params_(params), lo_(lo), hi_(hi), values_(kernel.values.size()) {
    for (const Memory& m : kernel.memory) {
      if (m.scratch) {
        uint64_t bytes = m.count * static_cast<uint64_t>(bytes_of(m.element));
        expect(m.number + bytes <= scratch.bytes, "scratch ", m.name, " ends beyond the ", scratch.bytes,
               " bytes given");
        memory_.push_back({static_cast<std::byte*>(scratch.data) + m.number, bytes});
      } else {
        expect(m.number < buffers.size(), "kernel ", kernel.name, " has no buffer ", m.number);
        memory_.push_back(buffers[m.number]);
      }
    }
  }

  int run() {
    body(kernel_.body);
    return status_;
  }

 private:
  Type type(ValueId v) const { return kernel_.values[v].type; }
  int64_t integer(ValueId v) const { return integer_of(type(v), values_[v]); }

  std::byte* at(const Instruction& i) {
    int64_t place = integer(i.args[0]);
    switch (i.access) {
      case Access::uniform: break;
      case Access::contiguous: place += lane_; break;
      case Access::strided: place += lane_ * integer(i.args[1]); break;
      case Access::gathered: place += integer(i.args[1]); break;
    }
    const Memory& m = kernel_.memory[i.memory];
    int64_t size = bytes_of(m.element);
    expect(static_cast<uint64_t>(place) < memory_[i.memory].bytes / static_cast<uint64_t>(size), name(i.op), " of ",
           m.name, "[", place, "], which has ", memory_[i.memory].bytes, " bytes");
    return static_cast<std::byte*>(memory_[i.memory].data) + place * size;
  }

  void body(const std::vector<Instruction>& instructions) {
    for (const Instruction& i : instructions) instruction(i);
  }

  void instruction(const Instruction& i) {
    size_t extra = i.access == Access::strided || i.access == Access::gathered ? 2 : 1;
    Element element =
        i.op == Op::load || i.op == Op::store || i.op == Op::update ? kernel_.memory[i.memory].element : Element::f32;
    switch (i.op) {
      case Op::constant: values_[i.result] = i.bits; return;
      case Op::param:
        expect(i.bits < params_.size(), "kernel ", kernel_.name, " has no parameter ", i.bits);
        values_[i.result] = static_cast<Bits>(params_[i.bits]);
        return;
      case Op::lo: values_[i.result] = static_cast<Bits>(lo_); return;
      case Op::hi: values_[i.result] = static_cast<Bits>(hi_); return;
      case Op::position: values_[i.result] = static_cast<uint32_t>(lane_ - first_lane_); return;
      case Op::pick: values_[i.result] = kernel_.tables[i.bits].bits[values_[i.args[0]] & 15]; return;
      case Op::load:
        values_[i.result] =
            !i.guarded || values_[i.args[extra]] ? load_element(element, at(i)) : values_[i.args[extra + 1]];
        return;
      case Op::store:
        if (!i.guarded || values_[i.args[extra + 1]]) store_element(element, values_[i.args[extra]], at(i));
        return;
      case Op::update:
        if (!i.guarded || values_[i.args[extra + 1]])
          store_element(element,
                        combine(i.combine, computed_in(element), load_element(element, at(i)), values_[i.args[extra]]),
                        at(i));
        return;
      case Op::fault:
        if (values_[i.args[0]]) status_ |= static_cast<int>(i.bits);
        return;
      case Op::loop:
        if (kernel_.loops[i.loop].lanes) lanes(kernel_.loops[i.loop]);
        else counted(kernel_.loops[i.loop]);
        return;
      default: break;
    }
    Bits args[3] = {};
    for (size_t k = 0; k < i.args.size(); ++k) args[k] = values_[i.args[k]];
    values_[i.result] = evaluate(i, type(i.result), type(i.args[0]), args);
  }

  void counted(const Loop& l) {
    for (const Carry& c : l.carried) values_[c.argument] = values_[c.init];
    int64_t upper = integer(l.upper);
    std::vector<Bits> next(l.carried.size());
    for (int64_t i = integer(l.lower); i < upper; ++i) {
      if (l.conditional && !values_[l.carried[0].argument]) break;
      values_[l.index] = static_cast<Bits>(i);
      body(l.body);
      for (size_t k = 0; k < next.size(); ++k) next[k] = values_[l.carried[k].next];
      for (size_t k = 0; k < next.size(); ++k) values_[l.carried[k].argument] = next[k];
    }
    for (const Carry& c : l.carried) values_[c.result] = values_[c.argument];
  }

  void lanes(const Loop& l) {
    auto ways = static_cast<size_t>(l.ways);
    std::vector<std::vector<Bits>> copies;
    for (const Carry& c : l.carried) copies.emplace_back(ways, values_[c.init]);
    first_lane_ = integer(l.lower);
    int64_t upper = integer(l.upper);
    for (lane_ = first_lane_; lane_ < upper; ++lane_) {
      size_t way = static_cast<size_t>(lane_ - first_lane_) % ways;
      values_[l.index] = static_cast<Bits>(lane_);
      for (size_t k = 0; k < copies.size(); ++k) values_[l.carried[k].argument] = copies[k][way];
      body(l.body);
      for (size_t k = 0; k < copies.size(); ++k) copies[k][way] = values_[l.carried[k].next];
    }
    for (size_t k = 0; k < copies.size(); ++k) {
      const Carry& c = l.carried[k];
      if (c.combine == Combine::position) continue;
      for (size_t width = ways / 2; width; width /= 2)
        for (size_t j = 0; j < width; ++j) {
          if (c.combine == Combine::argmin || c.combine == Combine::argmax) {
            auto &best = copies[k], &position = copies[k + 1];
            auto there = [&](size_t w) { return static_cast<int64_t>(position[w]); };
            if (!displaces(c.combine, type(c.argument), best[j], there(j), best[j + width], there(j + width))) continue;
            best[j] = best[j + width];
            position[j] = position[j + width];
          } else copies[k][j] = combine(c.combine, type(c.argument), copies[k][j], copies[k][j + width]);
        }
    }
    for (size_t k = 0; k < copies.size(); ++k) values_[l.carried[k].result] = copies[k][0];
  }

  const Kernel& kernel_;
  std::span<const int64_t> params_;
  int64_t lo_, hi_;
  std::vector<Bits> values_;
  std::vector<Span> memory_;
  int64_t lane_ = 0, first_lane_ = 0;
  int status_ = 0;
};

}  // namespace

int interpret(const Kernel& kernel, std::span<const Span> buffers, std::span<const int64_t> params, Span scratch,
              int64_t lo, int64_t hi) {
  return Interpreter(kernel, buffers, params, scratch, lo, hi).run();
}

}  // namespace tenon::compile
