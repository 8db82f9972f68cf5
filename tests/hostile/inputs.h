// The programs that the inputs of fuzz_generated and fuzz_mutated stand for.
#pragma once
#include <span>
#include <string>

namespace tenon {

/// Over all operators, and mutated now and then.
std::string generated_input(std::span<const std::byte> bytes);
/// A real program (tests/fuzz/seeds/program), mutated.
std::string mutated_input(std::span<const std::byte> bytes);

}  // namespace tenon
