// Samples to train on: arrays in a file, one row to a sample.
#pragma once
#include <string>
#include <vector>

#include "tenon/export/exported_program.h"
#include "tenon/io/npy.h"
#include "tenon/train/loss.h"

namespace tenon::train {

/// The arrays of an .npz or .safetensors file, mapped, so they may be larger than memory. They are called like the
/// program's inputs and the loss's targets, or arr_0, arr_1, ... in this order. What has the same first size as the
/// first of the program's tensors has a row for each sample; other inputs are the same for every batch.
class Data {
 public:
  /// Checks names, dtypes, sizes, numbers of samples and classes; an Error names the array, what was expected and what
  /// came.
  Data(const std::string& path, const ExportedProgram& program, const std::vector<Target>& targets);

  int64_t samples() const { return samples_; }
  const std::string& path() const { return path_; }
  /// The arguments of a run for these samples: the program's inputs, then the targets.
  std::vector<CallArg> batch(std::span<const int64_t> samples) const;

 private:
  struct Column {
    std::string name;
    TensorMeta meta;  // what the program takes
    Tensor all;       // the array; none: the input is left out
    bool by_sample = true;
  };
  void find_arrays(const std::vector<NamedArray>& arrays);
  void check(Column& column, SymInt batch);
  void check_classes(const Column& column, const Target& target) const;
  Tensor rows(const Column& column, std::span<const int64_t> samples) const;

  std::string path_;
  std::vector<Column> columns_;
  int64_t samples_ = -1;
};

/// Whether the array called target of a file has a floating point dtype.
bool has_real_target(const std::string& path);

/// 0 to count - 1 in an order that the seed and the epoch alone decide.
std::vector<int64_t> shuffled(int64_t count, uint64_t seed, int64_t epoch);

}  // namespace tenon::train
