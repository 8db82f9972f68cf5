// What the public headers declare, read from their text: the functions that a user can call.
#pragma once
#include <map>
#include <string>

namespace tenon_test {

/// How many overloads there are of each public function of the headers under `folder`, by its name within tenon:
/// "load", "Tensor::size", "nn::Linear::Linear", "operator+". Constructors bear the name of their class; destructors,
/// deleted and defaulted functions, private and protected ones, tenon::detail and free functions of other namespaces of
/// that name are left out.
std::map<std::string, int> public_functions(const std::string& folder);

}  // namespace tenon_test
