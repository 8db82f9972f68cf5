#include "tenon/artifact/compile.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "kernels/library.h"
#include "tenon/artifact/compilation.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/artifact/in_process.h"
#include "tenon/compile/emit_native.h"
#include "tenon/package/artifact_writer.h"

namespace tenon::artifact {

std::string_view name(Target target) {
  switch (target) {
    case Target::x86_64_v3: return "x86-64-v3";
    case Target::x86_64_v4: return "x86-64-v4";
  }
  unreachable();
}
std::optional<Target> target_named(std::string_view given) {
  for (Target t : {Target::x86_64_v3, Target::x86_64_v4})
    if (name(t) == given) return t;
  return std::nullopt;
}

namespace {

compile::Isa isa_of(Target target) { return target == Target::x86_64_v3 ? compile::Isa::v3 : compile::Isa::v4; }
tenon_target code_of(Target target) {
  return target == Target::x86_64_v3 ? TENON_TARGET_X86_64_V3 : TENON_TARGET_X86_64_V4;
}

package::CodeImage generated(const plan::Planned& planned, Target target) {
  std::vector<compile::Kernel> kernels;
  for (const auto& kernel : planned.kernels) kernels.push_back(*kernel);
  compile::NativeCode code = compile::emit_native(kernels, isa_of(target));
  package::CodeImage image;
  image.target = code_of(target);
  const auto* bytes = reinterpret_cast<const std::byte*>(code.bytes.data());
  image.bytes.assign(bytes, bytes + code.bytes.size());
  for (const compile::NativeSymbol& s : code.kernels) image.symbols.push_back({s.name, s.offset, s.size});
  return image;
}

/// The families of the kernel library that the program calls, whole.
void add_library(const plan::Planned& planned, Target target, std::vector<package::CodeImage>& to) {
  auto called = [&](const kernels::Symbol& s) {
    return std::find(planned.called.begin(), planned.called.end(), s.name) != planned.called.end();
  };
  for (const kernels::Image& image : kernels::images()) {
    if (image.target != code_of(target) || std::none_of(image.symbols.begin(), image.symbols.end(), called)) continue;
    package::CodeImage copy{image.target, {image.bytes.begin(), image.bytes.end()}, {}};
    for (const kernels::Symbol& s : image.symbols) copy.symbols.push_back({std::string(s.name), s.offset, s.size});
    to.push_back(std::move(copy));
  }
}

package::ArtifactParts parts(const Compilation& compilation, const CompileOptions& options, const std::string& soname) {
  package::ArtifactParts out{soname, compilation.planned().tables, {}};
  uint32_t targets = 0;
  for (Target target : options.targets) {
    targets |= 1u << code_of(target);
    if (!compilation.planned().kernels.empty()) out.code.push_back(generated(compilation.planned(), target));
    add_library(compilation.planned(), target, out.code);
  }
  out.tables.targets(targets);
  return out;
}

}  // namespace

void compile_program(const Executable& executable, const State& state, const std::string& path,
                     const CompileOptions& options) {
  Compilation compilation(executable, state, options);
  package::ArtifactWriter writer(path, parts(compilation, options, std::filesystem::path(path).filename()));
  compilation.fill(writer.weights());
  writer.commit();
}

std::vector<std::byte> compile_program(const Executable& executable, const State& state,
                                       const CompileOptions& options) {
  Compilation compilation(executable, state, options);
  return package::artifact_bytes(parts(compilation, options, "model.so"),
                                 [&](std::span<std::byte> weights) { compilation.fill(weights); });
}

std::shared_ptr<const CompiledProgram> interpret_compiled(const Executable& executable, const State& state,
                                                          const CompileOptions& options) {
  Compilation compilation(executable, state, options, true);
  struct Owner {
    explicit Owner(uint64_t bytes) : weights(bytes) {}
    Storage weights;
    std::shared_ptr<const void> program;
  };
  plan::Planned& planned = compilation.planned();
  auto owner = std::make_shared<Owner>(std::max<uint64_t>(planned.tables.weights_size(), 1));
  std::span<std::byte> weights{owner->weights.mutable_data(), planned.tables.weights_size()};
  compilation.fill(weights);
  InProcess opened = open_in_process(std::move(planned), weights, Execution::interpreted);
  owner->program = opened.owner;
  return CompiledProgram::over(opened.program, owner);
}

std::optional<Target> native_target() {
  if (compile::machine_has(compile::Isa::v4)) return Target::x86_64_v4;
  if (compile::machine_has(compile::Isa::v3)) return Target::x86_64_v3;
  return std::nullopt;
}

}  // namespace tenon::artifact
