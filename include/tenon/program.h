// Programs as torch.export writes them: read, written, differentiated, shown.
#pragma once
#include <tenon/error.h>
#include <tenon/function.h>
#include <tenon/shared.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::TENON_INLINE v0 {
/// Is told, a line each, which passes were run and how long they took, and what could not be kept.
using Log = Function<void(const std::string& line)>;

/// Where a long call stands: its step of steps, the first of them 1, and what is done in it.
struct Progress {
  int step = 0, steps = 0;
  const char* doing = "";
};
/// Is told when a step begins. Neither of the two may throw.
using OnProgress = Function<void(const Progress& progress)>;

/// A program that nothing changes any more: copies share it, and threads may use it at once.
class TENON_PUBLIC ExportedProgram {
 public:
  std::vector<std::string> input_names() const;  // of the flattened arguments
  std::vector<std::string> parameter_names() const;
  std::vector<std::string> buffer_names() const;
  std::string torch_version() const;                   // of the PyTorch that exported it
  std::vector<std::string> missing_operators() const;  // those that Tenon cannot run

 private:
  friend struct detail::Access;
  detail::Shared<detail::ProgramBody> body_;
};

struct LoadOptions {
  std::string model;  // which program of a file that holds several
  OnProgress progress;
};
/// Reads and verifies a .pt2 file. Weights stay in the mapped file until they are used.
TENON_PUBLIC ExportedProgram load_program(const std::string& path, const LoadOptions& options = {});

struct SaveOptions {
  Log log;  // told what could not be written, as unreadable sample inputs
};
/// Writes a file that torch.export.load reads; it appears whole or not at all.
TENON_PUBLIC void save(const ExportedProgram& program, const std::string& path, const SaveOptions& options = {});

struct DifferentiateOptions {
  std::size_t of = 0;              // which user output; where it is no scalar, its cotangent becomes a further input
  std::string wrt = "parameters";  // parameters, inputs, all, or names separated by commas
  Log log = {};
  OnProgress progress = {};
};
/// Forward and backward in one program, which can be run and saved.
TENON_PUBLIC ExportedProgram differentiate(const ExportedProgram& program, const DifferentiateOptions& options = {});

struct ShowOptions {
  std::string after = "read";  // read, normalized, functional, joint, partition, loops
  std::size_t of = 0;          // joint, partition
  std::string wrt = "parameters";
  Log log = {};
};
/// The program after a stage, as text.
TENON_PUBLIC std::string show(const ExportedProgram& program, const ShowOptions& options = {});

}  // namespace tenon::TENON_INLINEv0
