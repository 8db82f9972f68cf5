// A program taken the whole way, in process: read, checked, printed, written, functionalized, differentiated, split,
// lowered, run.
#pragma once
#include <string_view>

namespace tenon {

struct Journey {
  bool read = false, checked = false, functional = false, joint = false, lowered = false, ran = false;
};

/// Errors end a stage and are what a user would see; anything else passes through. Runs only programs of small sizes.
Journey go_the_whole_way(std::string_view program_json);

}  // namespace tenon
