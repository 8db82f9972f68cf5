// Names of nodes as torch.fx gives them: the operator's name, with a number where that is taken or means something in
// Python.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace tenon::dialect {

class NodeNames {
 public:
  std::string make(std::string_view wanted);  // split "add_2" into base and number, count on where it is taken
  void reserve(const std::string& name) { used_.insert(name); }

 private:
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, long> counts_;  // by base: the last number given
};

/// Names of placeholders come first: a node whose name one of them has is named anew, behind the highest number of its
/// base so far.
class NamesAroundInputs {
 public:
  void take(const std::string& name) { rename(name, true); }
  std::string rename(const std::string& name, bool is_input = false);

 private:
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, long> highest_;
};

}  // namespace tenon::dialect
