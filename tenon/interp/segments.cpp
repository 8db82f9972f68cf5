#include "tenon/interp/segments.h"

#include <algorithm>

#include "tenon/base/error.h"

namespace tenon::interp {
namespace {

using loop::BufferId;
using loop::no_buffer;
using loop::Role;

constexpr size_t nowhere = ~size_t{0};

bool is_bind(const loop::Step& step) { return std::holds_alternative<loop::Bind>(step); }

class Cut {
 public:
  explicit Cut(const loop::Program& program)
      : program_(program), owner_(program.buffers.size(), nowhere), lives_(program.buffers.size()) {}

  Segments run() {
    auto mention = [&](const Sizes& list) {
      for (SymInt e : list)
        for (SymInt symbol : sym::symbols_of(e)) sizes_.insert(symbol.name());
    };
    for (const loop::Buffer& b : program_.buffers) {
      mention(b.sizes);
      mention(b.strides);
    }
    for (const loop::Input& input : program_.inputs) mention({input.number});
    places_.push_back({nowhere, 0, 0, 0, &out_.main});
    out_.main.segments.push_back(segment(program_.on_state, nullptr));
    add(out_.main, program_.steps, program_.nodes.data());
    descend(0);
    find_owners();
    find_lives();
    give_out();
    find_uses();
    find_dependencies();
    out_.buffers = program_.buffers;
    return std::move(out_);
  }

 private:
  struct Place {  // of a block: the step that it is a body of
    size_t parent, segment, step, depth;
    Block* block;
  };
  struct Life {  // in terms of the owner's segments and steps
    size_t segment = nowhere, first = 0, last_segment = 0, last = 0;
    bool by_call = false;
  };

  Segment segment(std::span<const loop::Step> steps, const uint32_t* origins) const {
    Segment s;
    s.steps = steps;
    s.origins = origins;
    s.control.resize(steps.size());
    for (size_t i = 0; i < steps.size(); ++i)
      if (auto* control = std::get_if<loop::Control>(&steps[i])) s.control[i].resize(control->bodies.size());
    s.calls.resize(steps.size());
    s.told.resize(steps.size());
    Symbols to_come;  // bound at the end, behind everything else
    for (const loop::Step& step : steps)
      if (auto* bind = std::get_if<loop::Bind>(&step)) to_come.insert(bind->symbol.name());
    for (size_t i = 0; i < steps.size(); ++i) {
      auto* call = std::get_if<loop::Call>(&steps[i]);
      if (!call) continue;
      s.calls[i] = plan::host_call(program_, *call);
      for (loop::BufferRef b : s.calls[i]->results) s.told[i].push_back(mentions(b.id, to_come));
    }
    return s;
  }

  bool mentions(BufferId b, const Symbols& symbols) const {
    if (symbols.empty()) return false;
    for (SymInt size : program_.buffers[b].sizes)
      for (SymInt symbol : sym::symbols_of(size))
        if (symbols.contains(symbol.name())) return true;
    return false;
  }

  void add(Block& block, std::span<const loop::Step> steps, const uint32_t* origins) const {
    size_t begin = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      bool ends = is_bind(steps[i]) && (i + 1 == steps.size() || !is_bind(steps[i + 1]));
      if (!ends) continue;
      block.segments.push_back(segment(steps.subspan(begin, i + 1 - begin), origins + begin));
      begin = i + 1;
    }
    block.segments.push_back(segment(steps.subspan(begin), origins + begin));
  }

  // The blocks within a block, each behind the one it lies in. Segments no longer move by now.
  void descend(size_t at) {
    Block& block = *places_[at].block;
    for (size_t s = 0; s < block.segments.size(); ++s)
      for (size_t i = 0; i < block.segments[s].steps.size(); ++i) {
        auto* control = std::get_if<loop::Control>(&block.segments[s].steps[i]);
        if (!control) continue;
        if (control->kind == loop::Control::Kind::counted) out_.changing.insert(control->symbol.name());
        if (control->kind == loop::Control::Kind::choose)
          for (SymInt symbol : sym::symbols_of(control->value))
            if (!sizes_.contains(symbol.name())) out_.changing.insert(symbol.name());
        for (size_t k = 0; k < control->bodies.size(); ++k) {
          const loop::Body& body = control->bodies[k];
          for (const loop::Step& step : body.steps)
            if (auto* bind = std::get_if<loop::Bind>(&step)) out_.changing.insert(bind->symbol.name());
          Block& within = block.segments[s].control[i][k];
          add(within, body.steps, body.nodes.data());
          places_.push_back({at, s, i, places_[at].depth + 1, &within});
          descend(places_.size() - 1);
        }
      }
  }

  BufferId root_of(BufferId b) const {
    return program_.buffers[b].view_of == no_buffer ? b : program_.buffers[b].view_of;
  }

  size_t common(size_t a, size_t b) const {
    while (a != b) {
      if (places_[a].depth < places_[b].depth) std::swap(a, b);
      a = places_[a].parent;
    }
    return a;
  }

  template <class F>
  void for_each_step(const F& visit) const {
    for (size_t at = 0; at < places_.size(); ++at)
      for (size_t s = 0; s < places_[at].block->segments.size(); ++s)
        for (size_t i = 0; i < places_[at].block->segments[s].steps.size(); ++i) {
          const loop::Step& step = places_[at].block->segments[s].steps[i];
          if (!std::holds_alternative<loop::Control>(step)) visit(step, at, s, i);
        }
  }

  // The innermost block that all uses of a buffer lie in. What comes from outside, or goes there, is the program's.
  void find_owners() {
    for_each_step([&](const loop::Step& step, size_t at, size_t, size_t) {
      auto use = [&](BufferId b) {
        for (BufferId each : {b, root_of(b)}) {
          const loop::Buffer& buffer = program_.buffers[each];
          bool ours = buffer.role == Role::arena || buffer.view_of != no_buffer;
          size_t& owner = owner_[each];
          owner = !ours ? 0 : owner == nowhere ? at : common(owner, at);
        }
      };
      loop::for_each_read(program_, step, use);
      loop::for_each_write(program_, step, use);
    });
  }

  // Where each root is first written and last used.
  void find_lives() {
    for_each_step([&](const loop::Step& step, size_t at, size_t s, size_t i) {
      auto use = [&](BufferId b, bool write) {
        BufferId root = root_of(b);
        size_t in = at, segment = s, index = i;
        for (; in != owner_[root]; in = places_[in].parent) {
          segment = places_[in].segment;
          index = places_[in].step;
        }
        Life& life = lives_[root];
        if (write && (life.segment == nowhere || std::pair(segment, index) < std::pair(life.segment, life.first))) {
          life.segment = segment;
          life.first = index;
          life.by_call = tells(places_[at].block->segments[s], i, root);
          expect(!life.by_call || at == owner_[root] || program_.buffers[root].role != Role::arena,
                 program_.buffers[root].name, " is made by a call in a body and used outside of it");
        }
        if (std::pair(segment, index) > std::pair(life.last_segment, life.last)) {
          life.last_segment = segment;
          life.last = index;
        }
      };
      loop::for_each_read(program_, step, [&](BufferId b) { use(b, false); });
      loop::for_each_write(program_, step, [&](BufferId b) { use(b, true); });
    });
  }

  static bool tells(const Segment& segment, size_t i, BufferId b) {
    if (!segment.calls[i]) return false;
    const std::vector<loop::BufferRef>& results = segment.calls[i]->results;
    for (size_t r = 0; r < results.size(); ++r)
      if (results[r].id == b) return segment.told[i][r];
    return false;
  }

  void give_out() {
    for (BufferId b = 0; b < program_.buffers.size(); ++b) {
      if (owner_[b] == nowhere) continue;
      Block& block = *places_[owner_[b]].block;
      const loop::Buffer& buffer = program_.buffers[b];
      if (buffer.view_of != no_buffer) block.views.push_back(b);
      const Life& life = lives_[b];
      bool ours = buffer.role == Role::arena || buffer.role == Role::derived;
      if (!ours || buffer.view_of != no_buffer || life.segment == nowhere) continue;
      if (life.by_call) {
        block.called.push_back(b);
        continue;
      }
      Segment& segment = block.segments[life.segment];
      bool stays = life.last_segment != life.segment || buffer.role == Role::derived;
      segment.born.push_back(b);
      segment.first.push_back(life.first);
      segment.last.push_back(stays ? segment.steps.size() : life.last);
    }
  }

  // Bodies use what the segments around them have placed.
  void find_uses() {
    for_each_step([&](const loop::Step& step, size_t at, size_t s, size_t) {
      auto use = [&](BufferId b) {
        for (BufferId each : {b, root_of(b)}) {
          places_[at].block->segments[s].uses.push_back(each);
          for (size_t in = at; in != 0; in = places_[in].parent) {
            const Place& place = places_[in];
            if (owner_[each] == 0 || owner_[each] == place.parent)
              places_[place.parent].block->segments[place.segment].uses.push_back(each);
          }
        }
      };
      loop::for_each_read(program_, step, use);
      loop::for_each_write(program_, step, use);
    });
    for (BufferId b = 0; b < program_.buffers.size(); ++b)  // empty results, which no step writes
      if (program_.buffers[b].role == Role::output && owner_[b] == nowhere) out_.main.segments.back().uses.push_back(b);
    std::unordered_map<BufferId, size_t> input_of;
    for (size_t i = 0; i < program_.inputs.size(); ++i)
      if (BufferId b = program_.inputs[i].buffer; b != no_buffer) {
        input_of.emplace(b, i);
        out_.main.segments[0].uses.push_back(b);
      }
    for (size_t at = 0; at < places_.size(); ++at)
      for (Segment& s : places_[at].block->segments) {
        std::sort(s.uses.begin(), s.uses.end());
        s.uses.erase(std::unique(s.uses.begin(), s.uses.end()), s.uses.end());
        for (BufferId b : s.uses) {
          if (program_.buffers[b].view_of != no_buffer && owner_[b] == at) s.views.push_back(b);
          if (auto input = input_of.find(b); at == 0 && input != input_of.end()) s.inputs.push_back(input->second);
        }
      }
  }

  // What changes within a run counts for those segments alone whose own steps speak of it.
  void find_dependencies() {
    for (const Place& place : places_)
      for (Segment& segment : place.block->segments) {
        Symbols found;
        auto add = [&](SymInt e, bool changing_too) {
          if (e.is_int()) return;
          for (SymInt symbol : sym::symbols_of(e))
            if ((changing_too || !out_.changing.contains(symbol.name())) && found.insert(symbol.name()).second)
              segment.depends.push_back(symbol);
        };
        auto add_sizes = [&](BufferId b, bool changing_too) {
          for (const Sizes* list : {&program_.buffers[b].sizes, &program_.buffers[b].strides})
            for (SymInt e : *list) add(e, changing_too);
        };
        for (const loop::Step& step : segment.steps) {
          if (std::holds_alternative<loop::Control>(step)) continue;
          auto own = [&](BufferId b) {
            for (BufferId each : {b, root_of(b)}) add_sizes(each, true);
          };
          loop::for_each_read(program_, step, own);
          loop::for_each_write(program_, step, own);
          if (!std::holds_alternative<loop::Call>(step) && !std::holds_alternative<loop::Check>(step))
            loop::for_each_size(program_, step, [&](SymInt e) { add(e, true); });
        }
        for (BufferId b : segment.uses) {
          add_sizes(b, false);
          add(program_.buffers[b].offset, false);
        }
      }
  }

  const loop::Program& program_;
  Segments out_;
  Symbols sizes_;  // symbols that sizes of buffers speak of
  std::vector<Place> places_;
  std::vector<size_t> owner_;  // of each buffer, views too: an index of places_
  std::vector<Life> lives_;    // of each root
};

}  // namespace

Segments cut(const loop::Program& program) { return Cut(program).run(); }

}  // namespace tenon::interp
