// The verbs of the command line. Each takes what was asked for and gives the exit status; errors are thrown as Error
// and printed by main.
#pragma once
#include <cstdint>
#include <string>

#include "tenon/artifact/compile.h"
#include "tenon/dialect/run_decompositions.h"
#include "tenon/pipeline.h"
#include "tenon/train/mode.h"
#include "tenon/train/trainer.h"

namespace tenon::tool {

enum Status { ok = 0, bad_input = 1, usage = 2 };

struct ShowRequest {
  std::string file;
  OpenOptions open;
  StageName after = StageName::read;
  WalkOptions walk;
  std::string stage = "read";  // the name of `after`
  bool json = false;
  bool tree = false;     // the modules it was exported from, in place of its graph
  bool verify = false;   // compiled files: checksums too
  bool verbose = false;  // passes and their times on stderr
};
int show_file(const ShowRequest& request);

struct RunRequest {
  std::string file;
  OpenOptions open;
  std::string inputs, outputs;  // empty: the stored samples; print
  int threads = 0;              // 0: as many as the machine has
  uint64_t seed = 0;
  bool verbose = false;
};
int run_file(const RunRequest& request);

struct GradRequest {
  std::string file, out;
  OpenOptions open;
  WalkOptions walk;
  bool verbose = false;
  std::string of_gradient;  // where not empty: this gradient of a joint program, in place of walk.of
};
int grad_file(const GradRequest& request);

struct ConvertRequest {
  std::string file, out;
  OpenOptions open;
  std::optional<Mode> mode;        // where given: the program in this mode
  std::optional<Dialect> dialect;  // where given: the program in this dialect
  std::vector<std::string> keep;   // operators that the dialect leaves as they are
};
int convert_file(const ConvertRequest& request);

struct DiffRequest {
  std::string first, second;
  OpenOptions open;
};
/// 0: they are equal; 1: they differ, and it was said in what; 2: one of them cannot be read.
int diff_files(const DiffRequest& request);

struct CompileRequest {
  std::string file, out;
  OpenOptions open;
  std::vector<artifact::Target> targets = {artifact::Target::x86_64_v3, artifact::Target::x86_64_v4};
  bool updatable = false;
  bool samples = true;           // kept in the artifact
  std::optional<DType> weights;  // of products: f16 or bf16
  bool tune = false;             // what is chosen between is measured on this machine
  bool with_c = false;           // the stages by the system's compiler
  std::string source;            // a folder to write source to; empty: none
  bool verbose = false;
};
int compile_file(const CompileRequest& request);

struct BenchRequest {
  std::string file;
  OpenOptions open;
  std::string inputs;  // empty: the stored samples
  int threads = 0;
  double seconds = 2;
  bool huge_pages = false;  // of a compiled program
  bool json = false;
};
int bench_file(const BenchRequest& request);

struct TrainRequest {
  std::string file, out;
  OpenOptions open;
  std::string data, held_out;  // files of samples
  train::TrainerOptions options;
  std::string resume;     // a state to go on from
  std::string step;       // a shared library to write the step to; empty: none
  double save_every = 0;  // seconds; 0: at the end of each epoch only
  int threads = 0;
  bool json = false;       // a line for each epoch
  bool interpret = false;  // not compiled
};
int train_file(const TrainRequest& request);
/// "90s", "5m", "1.5h" or seconds. An Error says what was expected.
double parse_duration(const std::string& text);

int list_ops(bool json);
int doctor();

}  // namespace tenon::tool
