// A program taken the whole way, in process: read, checked, printed, written, functionalized, differentiated, split,
// lowered, run, and on by further ways.
#pragma once
#include <string_view>

namespace tenon {

struct Journey {
  bool read = false, checked = false, functional = false, joint = false, lowered = false, ran = false;
};

/// Of the further ways (tests/hostile/further_ways.h). Fuzzing takes one of them for some inputs, chosen by the text.
enum class Ways { few, all };

/// Errors end a stage and are what a user would see; anything else passes through. State is made of small numbers.
/// Runs only programs of small sizes.
Journey go_the_whole_way(std::string_view program_json, Ways ways = Ways::few);

}  // namespace tenon
