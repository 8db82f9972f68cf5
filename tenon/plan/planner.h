// The tables of one program in the making: what make_tables goes through. For plan/ only.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "tenon/compile/make_kernel.h"
#include "tenon/plan/index_guards.h"
#include "tenon/plan/library.h"
#include "tenon/plan/lifetimes.h"
#include "tenon/plan/make_tables.h"
#include "tenon/plan/symbols.h"
#include "tenon/plan/units.h"

namespace tenon::plan {

/// Goes through a program once, in the order of its steps. Buffers and symbols get their place in the tables when a
/// step first speaks of them.
class Planner {
  using BufferId = loop::BufferId;
  using Expr = package::Expr;
  using Id = package::Id;
  using Tables = package::Tables;

 public:
  Planner(const loop::Program& program, const CallingConvention& convention, const TablesOptions& options);
  Planned run();

 private:
  Tables& t() { return out_.tables; }
  Expr expr(SymInt e) const { return symbols_.expr(e); }

  // The caller's tensors and numbers, results, random state, memory: planner_values.cpp.
  sym::Range range_of(SymInt symbol) const;

  template <class F>
  void for_each_size(F&& f) {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const loop::Input& input = program_.inputs[i];
      if (input.type != loop::Input::Type::tensor || is_state_input(i)) continue;
      for (size_t d = 0; d < input.meta.rank(); ++d) f(i, d, input.meta.sizes[d]);
    }
  }
  Id bind_long(const Expr& e);
  void declare_input_symbols();
  void bind_input_sizes();

  const InputMeaning* meaning(size_t input) const;
  bool is_random(size_t input) const;
  bool is_state_input(size_t input) const;

  package::BufferSpec spec(const loop::Buffer& b) const;
  static SymInt reach(const loop::Buffer& b);
  uint64_t place_weights(BufferId buffer);
  void add_inputs();
  void bind_numbers();

  void add_random(const loop::Input& in);
  void advance_random();
  void require_told() const;
  void store_random();

  void add_output(size_t i);
  void declare_unknown(const loop::Buffer& b);
  Id declared(SymInt symbol);
  bool is_bound(SymInt symbol) const { return symbols_.has(symbol) && !unbound_.contains(symbol.name()); }
  void bound(Id body, SymInt symbol);
  void collect_told(const std::vector<loop::Step>& steps);
  /// A symbol of its sizes that data will tell.
  std::optional<std::string_view> open_symbol(const loop::Buffer& b) const;
  bool depends_on_data(const loop::Buffer& b) const { return open_symbol(b).has_value(); }
  void finish_outputs();

  Id buffer(BufferId b);
  Id add_state(size_t input);
  Id segment();

  // Steps: planner_steps.cpp.
  void on_state();

  /// What a unit calls, before anything is written down.
  struct Made {
    const loop::Step* step = nullptr;  // of one step that is neither
    std::optional<compile::StageKernel> stage;
    std::vector<IndexGuard> guards;  // of the stage
    SymInt points = 0;
    std::optional<LibraryCalls> anchor;                                   // with a stage: its epilogue
    loop::BufferId result = loop::no_buffer, in_place = loop::no_buffer;  // the anchor's result lies in this one
    std::string origin, calls;
  };
  Made make(const Unit& unit, const std::vector<loop::Step>& steps, const std::vector<uint32_t>& nodes);
  void make(Made& out, const Unit& unit, const std::vector<loop::Step>& steps);
  void execute(const std::vector<const Made*>& batch);
  static std::string name_of(const std::vector<const Made*>& batch);
  void conditions(Id body, SymInt holds, std::string_view message);
  static SymInt points_of(const loop::Stage& stage);
  /// What a step calls, on what, and how much of it.
  struct Touched {
    std::string function;
    std::vector<std::pair<BufferId, bool>> buffers;  // written?
    SymInt bytes = 0;
    void add(BufferId b, bool written, SymInt size) {
      buffers.emplace_back(b, written);
      bytes = bytes + size;
    }
  };
  package::KernelSpec generated(Id body, const std::vector<const Made*>& batch, Touched& touched);
  void describe(const Touched& touched, const std::string& origin);
  static bool is_written(const compile::Kernel& kernel, size_t number);
  SymInt bytes_of(BufferId b) const;
  compile::Kernel* kept(const compile::Kernel& kernel);
  void anchors(Id body, const std::vector<const Made*>& batch);
  std::optional<SymInt> flops(const loop::Step& s) const;
  Id library(std::string_view function);
  void host(Id body, const loop::Call& call, const std::string& origin);
  void bind(Id body, const loop::Bind& bind);
  void check(Id body, const loop::Check& check);
  void control(Id body, const loop::Step& step, const loop::Control& c);
  Id nested(const loop::Body& from);
  void drop_unused_state();

  static constexpr int64_t points_per_chunk = 16384;

  struct Source {
    Id symbol;
    size_t input, dim;
    std::optional<Expr> derived;
  };

  const loop::Program& program_;
  const CallingConvention& convention_;
  const TablesOptions& options_;
  Planned out_;
  Symbols symbols_;
  std::vector<Id> ids_;      // of each buffer of the program; none: not used yet
  std::vector<Unit> units_;  // of the program's steps
  std::vector<Made> made_;   // of each unit
  std::vector<std::vector<size_t>> batches_;
  std::vector<Life> lives_;
  std::vector<Source> sources_;
  std::vector<size_t> states_;
  std::vector<std::pair<size_t, Id>> numbers_;
  std::vector<std::pair<Id, SymInt>> number_outputs_;
  std::unordered_set<BufferId> told_;                                     // results of calls whose sizes are bound
  std::unordered_map<std::string_view, std::vector<BufferId>> deferred_;  // outputs, by a symbol that data will tell
  std::vector<std::string_view> bound_here_;                              // symbols that this list of steps binds
  std::unordered_set<std::string_view> unbound_;                          // symbols that data will tell
  std::unordered_set<std::string_view> untold_;                           // those of them that no step has told yet
  struct Waiting {
    Expr value;
    Id as;
    std::set<Id> symbols;  // that are still open
  };
  std::set<Id> open_;             // of symbols that nothing has bound yet
  std::vector<Waiting> waiting_;  // long expressions of them
  std::unordered_map<std::string, size_t> kernel_ids_;
  std::optional<Id> random_, drawn_;
  std::optional<Id> segment_;  // where arena buffers go that are first used now
  Id body_ = Tables::main;
  uint32_t now_ = 0;
  uint64_t weights_ = 0;
  std::unordered_set<Id> entry_;             // symbols that the inputs tell
  std::map<std::vector<int64_t>, Id> long_;  // expressions over those that became symbols
  size_t long_count_ = 0;
};

}  // namespace tenon::plan
