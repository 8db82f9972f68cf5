// A program as the modules it was exported from, to be called and replaced one by one.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tenon/export/split_modules.h"
#include "tenon/pipeline.h"

namespace tenon {

/// The modules of a program by their dotted paths, the program itself under "". Each takes and gives a flat list:
/// arguments and results of its forward where its signature was preserved at export, else the tensors that it uses of
/// others and others use of it. Whatever writes is made to give values first (the aten dialect).
class Unflattened {
 public:
  using Forward = std::function<std::vector<CallArg>(const std::vector<CallArg>& inputs)>;
  explicit Unflattened(const ExportedProgram& program);
  ~Unflattened();

  const ExportedProgram& program() const { return program_; }  // in the aten dialect
  std::vector<std::string> modules() const;                    // paths in order of first use, "" first
  const ModuleCall& module(const std::string& path) const;     // the first call of it; an Error where there is none

  /// The results of the whole program, flattened; updated buffers and parameters are kept for the next call.
  std::vector<CallArg> call(const std::vector<CallArg>& inputs);
  /// One module by itself, or what it was replaced by.
  std::vector<CallArg> call_module(const std::string& path, const std::vector<CallArg>& inputs);
  /// From now on forward is called wherever the program calls the module; it must give as many values.
  void replace(const std::string& path, Forward forward);
  void restore(const std::string& path);
  Tensor get(const std::string& name) const;  // of the state
  void set(const std::string& name, const Tensor& value);

 private:
  using Values = std::unordered_map<ValueId, CallArg>;
  struct Part;
  void collect(const ModuleCall& module);
  void run(const ModuleCall& module, Values& values);
  std::vector<CallArg> run_own(const ModuleStep& step, const Values& values);
  std::vector<CallArg> gathered(const Args& args, const Values& values) const;

  ExportedProgram program_;
  ModuleCall root_;
  std::vector<const ModuleCall*> in_order_;
  std::map<std::string, Forward> replaced_;
  std::map<const ModuleStep*, std::unique_ptr<Part>> parts_;
};

}  // namespace tenon
