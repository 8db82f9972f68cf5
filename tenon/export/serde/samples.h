// Sample inputs: a torch.save file inside a .pt2, read as inert data.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tenon/export/exported_program.h"
#include "tenon/export/serde/archive.h"

namespace tenon::serde {

/// Reads the samples of an archive when called: see ExportedProgram::samples. Of the program it keeps the tree only.
std::function<std::optional<SampleInputs>()> sample_reader(std::shared_ptr<const Archive> archive,
                                                           const ExportedProgram& program);

/// The samples hold objects of a class of the user's, which are not understood: their bytes can be copied.
class OpaqueSamples : public Error {
 public:
  OpaqueSamples(const std::string& message, SampleInputs as_stored) : Error(message), samples(std::move(as_stored)) {}
  SampleInputs samples;  // without leaves
};

/// The fields of a dataclass, as its tree tells them; none where it is no dataclass.
struct DataclassFields {
  std::vector<std::string> given, none;
};
std::optional<DataclassFields> dataclass_fields(const Tree& tree);

/// The torch.save file that holds these samples; storages are shared in it as the tensors share them. Of what
/// class a namedtuple or a dataclass is, and what a defaultdict makes, is read from the file they came from.
std::string write_samples(const SampleInputs& samples);

}  // namespace tenon::serde
