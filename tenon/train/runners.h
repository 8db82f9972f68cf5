// The programs of a training over one state, compiled or interpreted.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/session/session.h"

namespace tenon::artifact {
class CompiledProgram;
class CompiledState;
class CompiledSession;
}  // namespace tenon::artifact

namespace tenon::train {

struct RunnersOptions {
  bool compile = true;  // to machine code, where this machine and the programs allow it
  int threads = 0;      // of compiled programs; 0: all of the machine's
};

/// Runs several executables over one state, one at a time. Interpreted, they run in the state itself; compiled, in
/// its tensors too, but for those that a program has in another order, of which it keeps a copy. Which of both it is
/// makes no other difference than rounding.
class Runners {
 public:
  Runners(std::vector<std::shared_ptr<const Executable>> programs, std::unique_ptr<State> state,
          const RunnersOptions& options);
  ~Runners();

  /// Results without updates of the state. A program that is `apart` leaves the state as it is.
  RunResult run(size_t program, const std::vector<CallArg>& inputs, bool apart = false);
  /// The state with everything that was written so far.
  State& state();
  void replace_state(std::unique_ptr<State> state);

  bool compiled() const { return compiled_; }
  const std::string& why_interpreted() const { return reason_; }  // empty where nobody asked for anything else

 private:
  struct Program;
  void compile(const RunnersOptions& options);
  void make_state(Program& program, bool apart);
  void fill(Program& program, bool apart);
  void bring_back();

  std::vector<std::unique_ptr<Program>> programs_;
  std::unique_ptr<State> state_;
  std::vector<std::string> written_;  // by any of the programs
  bool compiled_ = false;
  std::string reason_;
  Program* latest_ = nullptr;  // who has what the state does not have yet
  uint64_t version_ = 1;       // of the contents; every run that writes makes a new one
};

}  // namespace tenon::train
