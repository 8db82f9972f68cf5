// Machine code in memory of this process, ready to be called.
#pragma once
#include "tenon/compile/emit_native.h"
#include "tenon/compile/kernel_args.h"

namespace tenon::compile {

class MappedCode {
 public:
  /// An Error where the system does not let memory be executed.
  explicit MappedCode(const NativeCode& code);
  ~MappedCode();
  MappedCode(const MappedCode&) = delete;
  MappedCode& operator=(const MappedCode&) = delete;
  KernelFunction function(size_t kernel = 0) const;

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
  std::vector<NativeSymbol> symbols_;
};

}  // namespace tenon::compile
