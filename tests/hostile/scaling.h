// Whether the work for a file grows as the file does, counted and not timed. A quadratic step grows by 16 where the
// file grows by 4.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/hostile/program_text.h"

namespace tenon::scaling {

using Make = std::function<std::string(size_t)>;  // the bytes of a file
using Way = std::function<void(const std::string&)>;

/// Everything that is done with a program without running it: to its loops, and to the files of its gradients. What a
/// stage refuses is part of it: the refusal counts.
enum class Until { loops, gradients };
void go_all_the_way(const std::string& bytes, Until until = Until::gradients,
                    std::vector<std::string>* refusals = nullptr);
/// From the file to what is executed, and two runs of that: one that makes ready, and one that finds everything ready.
void go_and_run(const std::string& bytes);

/// n against 4 n: the work grows by `most` at most. A table that grows by doubling, and n log n, are 5.5.
void expect_growth(const Make& make, size_t n, const Way& way, double most);
void expect_linear(const Make& make, size_t n, const Way& way);
/// All the way. Stages may refuse a program for what Tenon does not do; `refused` is what they say then.
void expect_linear(const Make& make, size_t n, const char* refused = nullptr);

TensorMeta f32(Sizes sizes);
/// A program over x: f32[2, 3].
ProgramText start();
std::string relu(GraphText& g, size_t i, const std::string& from, const TensorMeta& meta = f32({2, 3}));
std::string finished(ProgramText& p, const std::string& result = "x");

}  // namespace tenon::scaling
