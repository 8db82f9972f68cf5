#pragma once
#include "tenon/templates/lines.h"

namespace tenon::templates {

// For float, double and std::int64_t (logcumsumexp: the first two). Running values of float are kept in double, as
// PyTorch does on a CPU; integers wrap around.

template <class T>
void cumsum(const T* from, const Lines& lines, T* to, const Lines& to_lines);
template <class T>
void cumprod(const T* from, const Lines& lines, T* to, const Lines& to_lines);
template <class T>
void logcumsumexp(const T* from, const Lines& lines, T* to, const Lines& to_lines);

/// The greatest (least) so far and where it was last seen. After a NaN all values are NaN, at the last one's index.
template <class T>
void cummax(const T* from, const Lines& lines, T* values, std::int64_t* indices, const Lines& to_lines);
template <class T>
void cummin(const T* from, const Lines& lines, T* values, std::int64_t* indices, const Lines& to_lines);

}  // namespace tenon::templates
