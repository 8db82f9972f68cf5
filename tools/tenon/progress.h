// A line on the terminal while long work runs.
#pragma once
#include <memory>
#include <string>

#include "tenon/passes/driver.h"

namespace tenon::tool {

/// Shows "running model.pt2, 3 s" on stderr from the second half of the first second on, and takes it away at the end.
/// Shows nothing where stderr is no terminal.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;

 private:
  struct Watch;
  std::unique_ptr<Watch> watch_;
};

/// What was run and how long it took, a line for each pass, on stderr.
void report_passes(const std::vector<PassRecord>& passes);

}  // namespace tenon::tool
