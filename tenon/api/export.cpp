#include <tenon/export.h>

#include "tenon/api/access.h"
#include "tenon/api/exporter.h"
#include "tenon/autograd/record.h"
#include "tenon/interp/eager.h"
#include "tenon/passes/check_metas.h"

namespace tenon::v0 {

using detail::Access;
using detail::ExampleSizes;
using detail::Exporter;
using detail::guarded;

namespace {

constexpr int most_traces = 64;  // each but the last fixes one open dimension at least

tenon::SampleInputs sample_of(const std::vector<Tensor>& inputs, const tenon::Tree& tree) {
  tenon::SampleInputs out{tree, {}};
  for (const Tensor& input : inputs) {
    tenon::Tensor own = tenon::contiguous_copy(Access::unwrap(input, "an example input"));
    out.leaves.emplace_back(own);
  }
  return out;
}

}  // namespace

ExportedProgram export_program(const Function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>& forward,
                               const std::vector<Tensor>& inputs, const ExportOptions& options) {
  return guarded(ErrorKind::call, [&] {
    tenon::require(forward != nullptr, "export_program: expected a function, got an empty one");
    tenon::require(options.input_names.empty() || options.input_names.size() == inputs.size(),
                   "export_program: expected a name for each of the ", inputs.size(), " inputs, got ",
                   options.input_names.size());
    tenon::interp::install();
    std::vector<std::string> names = options.input_names;
    std::vector<ExampleSizes::Input> examples;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (names.size() == i) names.push_back(tenon::text("args_", i));
      examples.push_back({names[i], Access::unwrap(inputs[i], "an example input").meta()});
    }
    ExampleSizes sizes(std::move(examples), options.dynamic_shapes);
    for (int trace = 0;; ++trace) {
      tenon::expect(trace < most_traces, "export_program: what forward needs of its sizes does not settle");
      Exporter exporter(options, sizes);
      sizes.begin(exporter.shapes());
      std::vector<Tensor> arguments;
      for (size_t i = 0; i < inputs.size(); ++i) arguments.push_back(exporter.add_input(names[i], sizes.meta(i)));
      {
        tenon::DispatchScope scope(&exporter);
        tenon::ShapesScope shapes(&exporter.shapes());
        tenon::ExamplesScope decides(&sizes);
        detail::RecorderScope records(&exporter);
        tenon::autograd::Unrecorded unrecorded;
        exporter.add_results(forward(arguments));
      }
      if (sizes.again()) continue;
      exporter.check(sizes.probes());
      tenon::ExportedProgram program = exporter.finish(names);
      program.samples = [sample = sample_of(inputs, program.in_tree())] { return std::optional(sample); };
      tenon::verify(program);
      tenon::check_metas(program.graph.body(), program.hints);
      return Access::wrap(std::move(program));
    }
  });
}

}  // namespace tenon::v0
