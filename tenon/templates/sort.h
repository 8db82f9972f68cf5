#pragma once
#include "tenon/templates/lines.h"

namespace tenon::templates {

/// Sorts each line, stably: equal elements keep their order, in descending order too. NaN is greater than all else and
/// equal to NaN; -0 equals 0. values and indices are laid out by `to`. For float, double, std::int64_t.
template <class T>
void sort(const T* from, const Lines& from_lines, T* values, std::int64_t* indices, const Lines& to, bool descending);

/// The to.length greatest (or least) of each line, in order where `sorted`. Ties fall as they do in PyTorch on a CPU,
/// which leaves them to the standard library's partial_sort (few of many) and nth_element.
template <class T>
void topk(const T* from, const Lines& from_lines, T* values, std::int64_t* indices, const Lines& to, bool largest,
          bool sorted);

}  // namespace tenon::templates
