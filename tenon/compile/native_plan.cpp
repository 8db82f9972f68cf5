#include "tenon/compile/native_plan.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tenon/base/error.h"

namespace tenon::compile::native {
namespace {

class Planner {
 public:
  Planner(const Kernel& kernel, Isa isa, int fixed_frame) : kernel_(kernel), isa_(isa), frame_(fixed_frame) {
    size_t values = kernel.values.size(), loops = kernel.loops.size();
    plan_.node_of.assign(values, -1);
    plan_.counter_of.assign(loops, -1);
    plan_.pointer_of.assign(kernel.memory.size(), -1);
    plan_.shapes.resize(loops);
    plan_.lanes_loop_of.assign(values, no_loop);
    plan_.coalesced.resize(loops);
    plan_.index_used.assign(loops, false);
    defined_in_.assign(values, no_loop);
    defined_at_.assign(values, 0);
    last_use_.assign(values, -1);
    weight_.assign(values, 0);
    begin_.assign(loops, 0);
    end_.assign(loops, 0);
    parent_.assign(loops, no_loop);
  }

  Plan run() {
    number(kernel_.body, no_loop, no_loop);
    uses(kernel_.body, no_loop, no_loop, 0);
    make_nodes();
    allocate(Bank::general);
    allocate(Bank::vector);
    if (isa_ == Isa::v4) allocate(Bank::mask);
    hold_constants();
    place_slots();
    plan_.frame = frame_;
    return std::move(plan_);
  }

 private:
  int vector_bytes() const { return isa_ == Isa::v4 ? 64 : 32; }

  void define(ValueId v, uint32_t loop, uint32_t lanes, int at) {
    defined_in_[v] = loop;
    defined_at_[v] = at;
    plan_.lanes_loop_of[v] = lanes;
  }

  // As many lanes as fit a register of 32-bit values; where everything is 64 bits wide, of those.
  LanesShape shape(const Loop& l) const {
    bool narrow = false, wide = false;
    auto look = [&](auto&& self, const std::vector<Instruction>& body) -> void {
      for (const Instruction& i : body) {
        if (i.op == Op::loop) {
          for (const Carry& c : kernel_.loops[i.loop].carried) see(c.argument, narrow, wide);
          self(self, kernel_.loops[i.loop].body);
        } else if (i.result != no_value) see(i.result, narrow, wide);
      }
    };
    for (const Carry& c : l.carried) see(c.argument, narrow, wide);
    look(look, l.body);
    LanesShape s;
    s.wide = wide && !narrow ? 1 : 2;
    s.lanes = s.wide == 1 ? vector_bytes() / 8 : vector_bytes() / 4;
    s.copies = l.ways / s.lanes;
    return s;
  }
  void see(ValueId v, bool& narrow, bool& wide) const {
    const Value& value = kernel_.values[v];
    if (!value.varying || value.type == Type::b1 || value.type == Type::i32) return;
    (width_of(value.type) == 8 ? wide : narrow) = true;
  }

  void number(const std::vector<Instruction>& body, uint32_t loop, uint32_t lanes) {
    for (const Instruction& i : body) {
      at_ += 2;
      if (i.op != Op::loop) {
        if (i.result != no_value) define(i.result, loop, lanes, at_);
        if (i.op == Op::constant) plan_.constants[i.result] = i.bits;
        continue;
      }
      const Loop& l = kernel_.loops[i.loop];
      uint32_t inner = l.lanes ? i.loop : lanes;
      parent_[i.loop] = loop;
      begin_[i.loop] = at_;
      if (l.lanes) plan_.shapes[i.loop] = shape(l);
      else if (lanes != no_loop) plan_.shapes[i.loop] = plan_.shapes[lanes];
      define(l.index, i.loop, inner, at_);
      for (const Carry& c : l.carried) define(c.argument, i.loop, inner, at_);
      number(l.body, i.loop, inner);
      at_ += 2;
      end_[i.loop] = at_;
      for (const Carry& c : l.carried) define(c.result, loop, lanes, at_);
    }
  }

  // A use in a loop that began after the definition lasts until that loop ends.
  void use(ValueId v, uint32_t loop, int at, int depth) {
    for (uint32_t l = loop; l != no_loop && l != defined_in_[v]; l = parent_[l]) at = std::max(at, end_[l]);
    last_use_[v] = std::max(last_use_[v], at);
    weight_[v] += std::pow(10.0, std::min(depth, 6));
  }

  void uses(const std::vector<Instruction>& body, uint32_t loop, uint32_t lanes, int depth) {
    int at = loop == no_loop ? 0 : begin_[loop];
    for (const Instruction& i : body) {
      at += 2;
      if (i.op == Op::loop) {
        const Loop& l = kernel_.loops[i.loop];
        for (ValueId v : {l.lower, l.upper}) { use(v, i.loop, end_[i.loop], depth + 1); }
        for (const Carry& c : l.carried) {
          use(c.init, loop, at, depth);
          use(c.next, i.loop, end_[i.loop], depth + 1);
          note_index(c.init, lanes);
          note_index(c.next, l.lanes ? i.loop : lanes);
        }
        uses(l.body, i.loop, l.lanes ? i.loop : lanes, depth + 1);
        at = end_[i.loop];
        continue;
      }
      for (ValueId v : i.args) {
        use(v, loop, at, depth);
        note_index(v, lanes);
      }
      if (i.op == Op::position) use(kernel_.loops[lanes].lower, loop, at, depth);
      if (i.op == Op::load || i.op == Op::store || i.op == Op::update) {
        pointer_use_.resize(kernel_.memory.size(), {-1, 0});
        int last = at;
        for (uint32_t l = loop; l != no_loop; l = parent_[l]) last = end_[l];
        pointer_use_[i.memory].first = std::max(pointer_use_[i.memory].first, last);
        pointer_use_[i.memory].second += std::pow(10.0, std::min(depth, 6));
      }
      if (lanes != no_loop) {
        note_broadcasts(i, lanes, depth);
        note_constants(i, depth);
      }
    }
    if (loop != no_loop && kernel_.loops[loop].lanes)
      for (const Carry& c : kernel_.loops[loop].carried) note_broadcast(c.next, loop, depth);
  }

  void note_index(ValueId v, uint32_t lanes) {
    if (lanes != no_loop && v == kernel_.loops[lanes].index) plan_.index_used[lanes] = true;
  }
  // Uniform integers that lanes use as operands are broadcast once, before the loop.
  void note_broadcasts(const Instruction& i, uint32_t lanes, int depth) {
    bool vector = i.result != no_value && kernel_.values[i.result].varying;
    size_t first = 0;
    if (i.op == Op::load || i.op == Op::store || i.op == Op::update) {
      if (i.access == Access::uniform) return;
      vector = true;
      first = i.access == Access::contiguous ? 1 : 2;
    }
    // A comparison's result is varying when its operands are, so the result decides for all the others.
    if (vector)
      for (size_t k = first; k < i.args.size(); ++k) note_broadcast(i.args[k], lanes, depth);
  }
  // Constants of lanes, those that an operation brings along too.
  void note_constants(const Instruction& i, int depth) {
    if (i.result == no_value || !kernel_.values[i.result].varying || i.op == Op::load) return;
    double weight = std::pow(10.0, std::min(depth, 6));
    if (i.op == Op::pick) table_weight_[i.bits] += weight;
    for (ValueId v : i.args)
      if (auto found = plan_.constants.find(v); found != plan_.constants.end())
        constant_weight_[{found->second, std::max(width_of(kernel_.values[v].type), 4)}] += weight;
    Type type = kernel_.values[i.result].type;
    if (type != Type::f32) return;
    if (i.op == Op::abs) constant_weight_[{0x7fffffff, 4}] += weight;
    if (i.op == Op::neg) constant_weight_[{0x80000000, 4}] += weight;
  }
  // Registers that no value was given hold the constants that are used most, from the beginning of the kernel on.
  void hold_constants() {
    std::vector<char> used(32, 0);
    for (const Node& n : plan_.nodes)
      if (n.bank == Bank::vector)
        for (uint8_t r : n.registers) used[r] = 1;
    std::vector<int> free;
    for (int r = isa_ == Isa::v4 ? 31 : 15; r >= first_vector; --r)
      if (!used[static_cast<size_t>(r)]) free.push_back(r);
    struct Candidate {
      double weight;
      std::optional<std::pair<uint64_t, int>> constant;
      uint64_t table = 0;
    };
    std::vector<Candidate> candidates;
    for (const auto& [key, weight] : constant_weight_) candidates.push_back({weight, key});
    for (const auto& [table, weight] : table_weight_)
      if (isa_ == Isa::v4 && width_of(kernel_.tables[table].type) == 4)
        candidates.push_back({weight, std::nullopt, table});
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.weight > b.weight; });
    for (const Candidate& c : candidates) {
      if (free.empty()) return;
      (c.constant ? plan_.held[*c.constant] : plan_.held_tables[c.table]) = free.back();
      free.pop_back();
    }
  }

  void note_broadcast(ValueId v, uint32_t lanes, int depth) {
    const Value& value = kernel_.values[v];
    if (value.varying || !is_int(value.type) || plan_.constants.count(v)) return;
    for (uint32_t l = defined_in_[v]; l != no_loop; l = parent_[l])
      if (l == lanes) return;  // made anew in every iteration
    auto [found, is_new] = plan_.broadcast_of.emplace(std::make_pair(lanes, v), -1);
    if (is_new) {
      Node node;
      node.bank = Bank::vector;
      node.start = begin_[lanes];
      node.end = end_[lanes];
      found->second = add(node);
      use(v, parent_[lanes], begin_[lanes], depth);
    }
    plan_.nodes[static_cast<size_t>(found->second)].weight += std::pow(10.0, std::min(depth, 6));
  }

  int add(Node node) {
    plan_.nodes.push_back(node);
    return static_cast<int>(plan_.nodes.size() - 1);
  }
  Node& node(int n) { return plan_.nodes[static_cast<size_t>(n)]; }

  void shape_node(Node& n, ValueId v) const {
    const Value& value = kernel_.values[v];
    uint32_t lanes = plan_.lanes_loop_of[v];
    n.count = 1;
    if (!value.varying) n.bank = is_float(value.type) ? Bank::vector : Bank::general;
    else if (value.type == Type::b1) n.bank = isa_ == Isa::v4 ? Bank::mask : Bank::vector;
    else {
      n.bank = Bank::vector;
      n.count = width_of(value.type) == 8 ? plan_.shapes[lanes].wide : 1;
    }
  }

  void make_nodes() {
    auto body = [&](auto&& self, const std::vector<Instruction>& instructions) -> void {
      for (const Instruction& i : instructions) {
        if (i.op == Op::loop) {
          self(self, kernel_.loops[i.loop].body);
          loop_nodes(i.loop);
        } else if (i.result != no_value && i.op != Op::constant) value_node(i);
      }
    };
    body(body, kernel_.body);
    for (size_t m = 0; m < pointer_use_.size(); ++m) {
      if (pointer_use_[m].first < 0) continue;
      Node n;
      n.bank = Bank::general;
      n.start = 0;
      n.end = pointer_use_[m].first;
      n.weight = pointer_use_[m].second;
      plan_.pointer_of[m] = add(n);
    }
  }
  void value_node(const Instruction& i) {
    ValueId v = i.result;
    if (last_use_[v] < 0) return;
    Node n;
    shape_node(n, v);
    // A value of several registers must not share them with its operands, for one is written before the next is read;
    // neither must a load that is chosen from after it was made.
    n.start = defined_at_[v] + (n.count > 1 || i.guarded ? 0 : 1);
    if (i.op == Op::lo || i.op == Op::hi) n.start = 0;  // they are stored at the entry, wherever they stand
    if (i.guarded) in_steps_.push_back(v);
    n.end = std::max(last_use_[v], n.start);
    n.weight = weight_[v] + 1;
    plan_.node_of[v] = add(n);
  }

  void loop_nodes(uint32_t loop) {
    const Loop& l = kernel_.loops[loop];
    Node counter;
    counter.bank = Bank::general;
    counter.start = begin_[loop];
    counter.end = end_[loop];
    counter.weight = weight_[l.index] + std::pow(10.0, std::min(depth_of(loop), 6)) * 3;
    plan_.counter_of[loop] = add(counter);
    if (!l.lanes) plan_.node_of[l.index] = plan_.counter_of[loop];
    else if (plan_.index_used[loop]) {
      Node n;
      shape_node(n, l.index);
      n.start = begin_[loop];
      n.end = end_[loop];
      n.weight = weight_[l.index];
      plan_.node_of[l.index] = add(n);
    }
    plan_.coalesced[loop].assign(l.carried.size(), false);
    for (size_t k = 0; k < l.carried.size(); ++k) {
      const Carry& c = l.carried[k];
      Node n;
      shape_node(n, c.argument);
      if (l.lanes) n.count *= plan_.shapes[loop].copies;
      n.start = begin_[loop];
      n.end = end_[loop];
      n.weight = weight_[c.argument] + weight_[c.next] + 1;
      if (!l.lanes) {
        n.end = std::max(n.end, last_use_[c.result]);
        n.weight += weight_[c.result];
      }
      int made = add(n);
      plan_.node_of[c.argument] = made;
      if (can_coalesce(l, loop, k, made)) {
        plan_.coalesced[loop][k] = true;
        node(plan_.node_of[c.next]).bank = Bank::none;
        plan_.node_of[c.next] = made;
      }
      if (!l.lanes) plan_.node_of[c.result] = made;
      else if (last_use_[c.result] >= 0) {
        Node result;
        shape_node(result, c.result);
        result.start = end_[loop];
        result.end = std::max(last_use_[c.result], result.start);
        result.weight = weight_[c.result] + 1;
        plan_.node_of[c.result] = add(result);
      }
    }
  }
  int depth_of(uint32_t loop) const {
    int depth = 0;
    for (; loop != no_loop; loop = parent_[loop]) ++depth;
    return depth;
  }

  bool can_coalesce(const Loop& l, uint32_t loop, size_t k, int made) const {
    const Carry& c = l.carried[k];
    if (l.conditional || defined_in_[c.next] != loop || c.next == l.index) return false;
    int own = plan_.node_of[c.next];
    if (own < 0 || kernel_.values[c.next].varying != kernel_.values[c.argument].varying) return false;
    for (const Carry& other : l.carried)
      if (other.argument == c.next || (&other != &c && other.next == c.next)) return false;
    // Loop results share their place with another loop's carried value.
    for (const Instruction& i : l.body)
      if (i.op == Op::loop)
        for (const Carry& inner : kernel_.loops[i.loop].carried)
          if (inner.result == c.next) return false;
    const Node &a = plan_.nodes[static_cast<size_t>(made)], &b = plan_.nodes[static_cast<size_t>(own)];
    int copies = l.lanes ? plan_.shapes[loop].copies : 1;
    if (a.bank != b.bank || a.count != b.count * copies) return false;
    if (std::find(in_steps_.begin(), in_steps_.end(), c.next) != in_steps_.end()) return false;
    return last_use_[c.argument] <= defined_at_[c.next];
  }

  void allocate(Bank bank) {
    std::vector<uint8_t> free;
    if (bank == Bank::general)
      for (int r : general_registers) free.push_back(static_cast<uint8_t>(r));
    if (bank == Bank::vector)
      for (int r = first_vector; r < (isa_ == Isa::v4 ? 32 : 16); ++r) free.push_back(static_cast<uint8_t>(r));
    if (bank == Bank::mask)
      for (int r : mask_registers) free.push_back(static_cast<uint8_t>(r));
    std::reverse(free.begin(), free.end());
    std::vector<int> order, active;
    for (size_t n = 0; n < plan_.nodes.size(); ++n)
      if (plan_.nodes[n].bank == bank) order.push_back(static_cast<int>(n));
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return node(a).start < node(b).start; });
    auto density = [&](int n) { return node(n).weight / (node(n).end - node(n).start + 1); };
    for (int current : order) {
      std::erase_if(active, [&](int n) {
        if (node(n).end >= node(current).start) return false;
        for (uint8_t r : node(n).registers) free.push_back(r);
        return true;
      });
      while (static_cast<int>(free.size()) < node(current).count) {
        int victim = current;
        for (int n : active)
          if (density(n) < density(victim)) victim = n;
        node(victim).spilled = true;
        if (victim == current) break;
        for (uint8_t r : node(victim).registers) free.push_back(r);
        node(victim).registers.clear();
        std::erase(active, victim);
      }
      if (node(current).spilled) continue;
      for (int k = 0; k < node(current).count; ++k) {
        node(current).registers.push_back(free.back());
        free.pop_back();
      }
      active.push_back(current);
    }
  }

  // Slots of values that never live at the same time are the same.
  void place_slots() {
    for (Bank bank : {Bank::vector, Bank::general, Bank::mask}) {
      int unit = bank == Bank::vector ? vector_bytes() : 8;
      std::vector<int> order;
      for (size_t n = 0; n < plan_.nodes.size(); ++n)
        if (plan_.nodes[n].bank == bank && plan_.nodes[n].spilled) order.push_back(static_cast<int>(n));
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return node(a).start < node(b).start; });
      struct Slot {
        int at, units, until;
      };
      std::vector<Slot> slots;
      frame_ = (frame_ + unit - 1) / unit * unit;
      for (int n : order) {
        auto fits = std::find_if(slots.begin(), slots.end(),
                                 [&](const Slot& s) { return s.units == node(n).count && s.until < node(n).start; });
        if (fits == slots.end()) {
          fits = slots.insert(slots.end(), Slot{frame_, node(n).count, 0});
          frame_ += unit * node(n).count;
        }
        fits->until = node(n).end;
        node(n).slot = fits->at;
      }
    }
  }

  const Kernel& kernel_;
  Isa isa_;
  Plan plan_;
  int at_ = 0, frame_;
  std::vector<uint32_t> defined_in_, parent_;
  std::vector<int> defined_at_, last_use_, begin_, end_;
  std::vector<double> weight_;
  std::vector<std::pair<int, double>> pointer_use_;
  std::map<std::pair<uint64_t, int>, double> constant_weight_;
  std::map<uint64_t, double> table_weight_;
  std::vector<ValueId> in_steps_;  // written before all their operands are read
};

}  // namespace

Plan make_plan(const Kernel& kernel, Isa isa, int fixed_frame) { return Planner(kernel, isa, fixed_frame).run(); }

}  // namespace tenon::compile::native
