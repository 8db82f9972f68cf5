// Executes a lowered program: memory, prepared stages, and the order of segments between sizes that data tells.
#pragma once
#include <memory>
#include <mutex>

#include "tenon/loop/program.h"
#include "tenon/sym/evaluate.h"
#include "tenon/tensor/dispatch.h"
#include "tenon/tensor/storage.h"

namespace tenon::interp {

struct Block;  // interp/segments.h
struct Prepared;
struct Segment;
struct Segments;

/// What a program derived from one state, for all runners of that program: the memory of on_state.
struct Derived {
  std::mutex mutex;
  std::shared_ptr<Storage> memory;
  uint64_t version = 0;  // of the state that it was made of
};

/// One program and the memory to run it, for one thread at a time. What a run needs is made ready once for each
/// combination of sizes and kept for the last sixteen; a run of known sizes allocates nothing but its results.
class ProgramRunner {
 public:
  /// The program must outlive the runner.
  explicit ProgramRunner(const loop::Program& program);
  ~ProgramRunner();

  struct Options {
    bool absent_are_ones = false;  // a tensor that is none is ones, made when its size is known
    Derived* derived = nullptr;    // kept by the caller as long as the runner runs; none: derived anew by each run
    uint64_t state_version = 0;    // where it is another than that of `derived`, that is made anew
  };
  /// `inputs` answer to program.inputs. Inputs and state that the program updates are written in place, after every
  /// check. Gives one entry per output: a tensor, a number; the input itself where it was updated.
  std::vector<CallArg> run(std::span<const CallArg> inputs, const Options& options);

 private:
  class Run;
  Prepared& prepare(Segment& segment, const sym::Bindings& symbols);
  void check_guards(const Run& run) const;
  void run_block(Block& block, Run& run, const Options& options);
  void run_control(const loop::Control& control, std::vector<Block>& bodies, Run& run, const Options& options);

  const loop::Program& program_;
  std::unique_ptr<Segments> segments_;
};

}  // namespace tenon::interp
