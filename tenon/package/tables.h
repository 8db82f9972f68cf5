// Builds the flat tables of an artifact (runtime/abi.h) piece by piece. Ids handed out are positions in the tables;
// strings and expressions that were there before are shared. Steps are collected in bodies, which are laid out when the
// tables are finished, so control flow nests freely.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/package/expr.h"

namespace tenon::package {

using Id = uint32_t;
constexpr Id none = TENON_NONE;

struct BufferSpec {
  std::string name;
  tenon_dtype dtype = TENON_F32;
  std::vector<Expr> sizes;
  std::optional<std::vector<Expr>> strides;  // in elements; none: contiguous
  uint8_t flags = 0;
  std::optional<Expr> bytes;              // none: from sizes, if contiguous
  std::optional<Expr> offset;             // arena: where the compiler placed it
  uint64_t weights = TENON_NO_WEIGHTS;    // state, derived, constant
  uint32_t first = 0, last = 0xfffffffe;  // arena: lifetime in steps
};

struct Instance {
  std::vector<Id> args;  // buffers; written(b) where the kernel writes
  std::vector<Expr> params;
  Expr extent = 1, grain = 1;
};
constexpr Id written(Id buffer) { return buffer | TENON_WRITTEN; }

struct Guard {
  Id buffer = none;
  Expr lo = 0, hi = 0;  // lo <= index < hi
  std::string what;
};
struct KernelSpec {
  Id function = none;
  std::vector<Instance> instances;
  std::vector<Guard> guards;
  std::optional<Expr> scratch;  // bytes for each thread
};
struct CallSpec {
  Id function = none;
  std::vector<Id> inputs, results;  // an input may be none
  std::vector<Expr> params;
  std::vector<Guard> guards;
  std::vector<std::string> errors;  // what the function may refuse, by its codes from 1 on
  std::optional<Expr> scratch, extent, grain;
};
/// What a step is called and how much it does, for people and for measuring.
struct StepNote {
  std::string name;
  std::optional<Expr> flops, bytes;
};

class Tables {
 public:
  explicit Tables(std::string_view producer);

  Id symbol(std::string_view name, int64_t lo, int64_t hi, tenon_type type = TENON_INTEGER);
  Id input(const BufferSpec& spec, bool is_written = false);
  Id output(const BufferSpec& spec, Id donor_input = none);
  /// Returns the buffer; the entry bears the buffer's name.
  Id state(const BufferSpec& spec, tenon_state_kind kind);
  Id frozen_state(std::string_view name, tenon_state_kind kind);
  Id derived(const BufferSpec& spec) { return add_buffer(spec, TENON_ROLE_DERIVED, none); }
  Id constant(const BufferSpec& spec) { return add_buffer(spec, TENON_ROLE_CONSTANT, none); }
  /// In `segment`, unless it is dynamic.
  Id arena(const BufferSpec& spec, Id segment);
  Id view(Id root, const BufferSpec& spec, const Expr& byte_offset);
  Id segment();
  /// Code of the artifact, found by name among the images it is written with; external: handed in by the host.
  Id function(std::string_view name, bool external = false);

  /// A list of steps. Body 0 is one run, body 1 the on_state steps.
  static constexpr Id main = 0, on_state = 1;
  Id body();
  void kernel(Id body, const KernelSpec& spec, const StepNote& note = {});
  /// The second one is called by the first on each block of its results.
  void fused(Id body, const KernelSpec& spec, const KernelSpec& epilogue, const StepNote& note = {});
  void call(Id body, const CallSpec& spec, const StepNote& note = {});
  void check(Id body, const Expr& condition, std::string_view message, const std::vector<Expr>& values = {});
  void plan(Id body, Id segment);
  void copy(Id body, Id from, Id to);
  void store(Id body, Id buffer, const Expr& index, const Expr& value);
  void make(Id body, Id output_buffer);
  void choose(Id body, const Expr& which, const std::vector<Id>& bodies);
  void repeat_while(Id body, Id condition_body, const Expr& condition, Id loop_body);
  void counted(Id body, Id symbol, const Expr& count, Id loop_body);
  void bind_element(Id body, Id symbol, Id buffer, const Expr& index);
  void bind_count(Id body, Id symbol, uint32_t count);
  void bind_size(Id body, Id symbol, Id buffer, uint32_t dim);
  void bind_expression(Id body, Id symbol, const Expr& value);
  // Bound before everything else: what the inputs say.
  void entry_size(Id symbol, Id input_buffer, uint32_t dim);
  void entry_stride(Id symbol, Id input_buffer, uint32_t dim);
  void entry_expression(Id symbol, const Expr& value);

  void metadata(std::string_view key, std::string_view value);
  void weights_size(uint64_t bytes) { weights_size_ = bytes; }
  uint64_t weights_size() const { return weights_size_; }

  const std::vector<std::string>& function_names() const { return function_names_; }
  bool is_external(Id function) const { return functions_[function].external != 0; }
  /// The entry of a function for a target, once the layout of the file is known.
  void place(Id function, tenon_target target, int64_t distance);
  void targets(uint32_t bits) { targets_ = bits; }
  /// Placing functions does not change the size.
  std::vector<std::byte> bytes() const;

 private:
  struct Body {
    std::vector<tenon_step> steps;
  };
  Id string(std::string_view s);  // a character that acts on terminals as \x1b
  Id expr(const Expr& e);
  Id optional_expr(const std::optional<Expr>& e) { return e ? expr(*e) : none; }
  Id consecutive(const std::vector<Expr>& exprs);
  tenon_list list(const std::vector<Id>& ids);
  tenon_list expr_list(const std::vector<Expr>& exprs);
  tenon_list guard_list(const std::vector<Guard>& guards);
  Id add_buffer(const BufferSpec& spec, tenon_role role, Id slot);
  void step(Id body, tenon_step_kind kind, size_t index, const StepNote& note = {});
  void add_kernel(const KernelSpec& spec);
  void bind(Id body, tenon_bind bind);

  uint32_t producer_ = 0, targets_ = 1;
  uint64_t weights_size_ = 0;
  std::string strings_;
  std::map<std::string, Id, std::less<>> string_ids_;
  std::map<std::pair<std::vector<int64_t>, int>, Id> expr_ids_;
  std::vector<int64_t> words_;
  std::vector<uint32_t> refs_;
  std::vector<tenon_expr> exprs_;
  std::vector<tenon_symbol> symbols_;
  std::vector<tenon_buffer> buffers_;
  std::vector<tenon_input> inputs_;
  std::vector<tenon_output> outputs_;
  std::vector<tenon_state_entry> states_;
  std::vector<tenon_function> functions_;
  std::vector<std::string> function_names_;
  std::vector<std::vector<Id>> segments_;
  std::vector<tenon_kernel_step> kernels_;
  std::vector<tenon_instance> instances_;
  std::vector<tenon_guard> guards_;
  std::vector<tenon_call_step> calls_;
  std::vector<tenon_bind> binds_, entry_;
  std::vector<tenon_check> checks_;
  std::vector<tenon_control> controls_;
  std::vector<tenon_copy> copies_;
  std::vector<tenon_store> stores_;
  std::vector<Id> control_bodies_;  // ids of bodies, in the order of `bodies`
  std::vector<tenon_metadata> metadata_;
  std::vector<Body> bodies_;
};

}  // namespace tenon::package
