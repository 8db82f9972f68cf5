// Runs passes: each named, timed and verified. Who wants to know what was run and how long it took asks here.
#pragma once
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tenon/graph/graph.h"
#include "tenon/loop/program.h"

namespace tenon {

struct PassRecord {
  std::string name;
  double milliseconds = 0;
  size_t before = 0, after = 0;  // nodes of the graph, or steps of the program
};

class PassDriver {
 public:
  /// pass() gives a Graph, a program that holds one as `.graph`, or a lowered Program; it is verified.
  template <class Pass>
  auto run(std::string name, size_t before, Pass&& pass) {
    auto start = std::chrono::steady_clock::now();
    auto result = pass();
    size_t after = checked(result);
    std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    records_.push_back({std::move(name), time.count(), before, after});
    return result;
  }
  const std::vector<PassRecord>& records() const { return records_; }

 private:
  static size_t checked(const Graph& graph) {
    verify(graph.body());
    return graph->nodes.size();
  }
  static size_t checked(const loop::Program& program) {
    loop::verify(program);
    return program.on_state.size() + program.steps.size();
  }
  template <class Program>
  requires requires(const Program& p) { p.graph; }
  static size_t checked(const Program& program) { return checked(program.graph); }
  template <class Halves>
  requires requires(const Halves& h) { h.forward; }
  static size_t checked(const Halves& halves) { return checked(halves.forward) + checked(halves.backward); }

  std::vector<PassRecord> records_;
};

/// "functionalize   1.24 ms   85 -> 92", a line each.
std::string to_text(const std::vector<PassRecord>& records);

}  // namespace tenon
