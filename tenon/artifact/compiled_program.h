// A compiled program, called as its .pt2 file is: flattened arguments in, results by what they mean out.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tenon/artifact/signature.h"
#include "tenon/session/session.h"

struct tenon_allocator;
struct tenon_program;
struct tenon_state;
struct tenon_session;

namespace tenon::artifact {

struct OpenedProgram;  // the runtime's handle

/// Code, tables and weights; any number of sessions share one.
class CompiledProgram {
 public:
  struct Options {
    int threads = 0;                             // 0: as many as the process may use
    const tenon_allocator* allocator = nullptr;  // for states and sessions; null: malloc
    bool huge_pages = false;                     // weights are copied into huge pages
  };
  /// The file is validated, and its code and tables compared with their checksums, before anything of it runs; a
  /// malformed one is an Error.
  static std::shared_ptr<const CompiledProgram> open(const std::string& path, const Options& options);
  /// The bytes are kept.
  static std::shared_ptr<const CompiledProgram> open(std::vector<std::byte> bytes, const Options& options);
  /// Of a handle that is opened already; `owner` holds what it lies in.
  static std::shared_ptr<const CompiledProgram> over(tenon_program* program, std::shared_ptr<const void> owner);
  ~CompiledProgram();

  const CallSignature& signature() const { return signature_; }
  /// Flattened arguments kept as samples; nothing where there are none.
  std::optional<std::vector<CallArg>> samples() const;
  std::string target() const;  // of the code that this machine runs: x86-64-v4
  tenon_program* handle() const;

 private:
  CompiledProgram() = default;
  std::string name_;
  CallSignature signature_;
  std::unique_ptr<OpenedProgram> opened_;
};

/// Time and traffic of one step of a run.
struct StepTime {
  std::string name;
  bool kernel = false;
  uint64_t nanoseconds = 0;
  double flops = 0, bytes = 0;
};

/// What a compiled program keeps between runs; many runs read it at once, or one writes it.
class CompiledState {
 public:
  explicit CompiledState(std::shared_ptr<const CompiledProgram> program, uint64_t seed = 0);
  /// Over tensors of the caller's, by the names of entries: what lies as the program has it is used where it lies, and
  /// must not move as long as the state lives; the rest is copied.
  CompiledState(std::shared_ptr<const CompiledProgram> program, uint64_t seed,
                const std::vector<std::pair<std::string, Tensor>>& lent);
  ~CompiledState();
  CompiledState(const CompiledState&) = delete;

  std::vector<std::string> names() const;  // those that can be read and set
  Tensor get(const std::string& name) const;
  void set(const std::string& name, const Tensor& value);
  bool is_lent(const std::string& name) const { return lent_.contains(name); }
  /// The caller wrote to tensors that it lent.
  void changed();
  tenon_state* handle() const { return state_; }

 private:
  void seed(uint64_t seed);
  std::shared_ptr<const CompiledProgram> program_;
  std::set<std::string> lent_;
  tenon_state* state_ = nullptr;
};

struct CompiledRunOptions {
  bool hand_out_updates = true;  // copies of what the run wrote to the state, among the results
};

/// Memory to run one compiled program; for one thread at a time.
class CompiledSession {
 public:
  explicit CompiledSession(std::shared_ptr<const CompiledProgram> program);
  ~CompiledSession();
  CompiledSession(const CompiledSession&) = delete;

  /// As Session::run: `inputs` are the flattened arguments; arguments that the program updates are written in place.
  RunResult run(CompiledState& state, const std::vector<CallArg>& inputs, const CompiledRunOptions& options = {});
  /// The same call made again and again, for measuring: on the same memory, results written over the former.
  std::function<void()> repeated(CompiledState& state, const std::vector<CallArg>& inputs);
  /// Each step's time of a run from now on is added to `times`; null ends it.
  void observe(std::vector<StepTime>* times);
  size_t memory() const;  // bytes that the session holds

 private:
  struct Call;
  Call bind(const std::vector<CallArg>& inputs) const;
  std::shared_ptr<const CompiledProgram> program_;
  tenon_session* session_ = nullptr;
};

}  // namespace tenon::artifact
