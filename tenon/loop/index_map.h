// A view is a map from the index of its result to the index of its base, kept as a sequence of parts. From it follow
// the view's meta, whether writes through it are possible, how it is written and what its gradient is.
#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tenon/tensor/meta.h"

namespace tenon {

namespace remap {
struct Permute {
  SmallVector<size_t, 6> dims;
  bool operator==(const Permute&) const = default;
};  // result dim i is base dim dims[i]
struct Slice {
  size_t dim = 0;
  SymInt start = 0, size = 0, step = 1;
  bool operator==(const Slice&) const = default;
};
struct Expand {
  Sizes sizes;
  bool operator==(const Expand&) const = default;
};  // broadcast, new dims in front
struct Reshape {
  Sizes sizes;
  bool operator==(const Reshape&) const = default;
};  // splits and merges of dimensions
struct Diagonal {
  size_t dim1 = 0, dim2 = 1;
  SymInt offset = 0, size = 0;
  bool operator==(const Diagonal&) const = default;
};  // the diagonal becomes the last dim
struct Unfold {
  size_t dim = 0;
  SymInt size = 0, step = 1;
  bool operator==(const Unfold&) const = default;
};  // windows become the last dim
struct Strided {
  Sizes sizes, strides;
  SymInt offset = 0;
  bool operator==(const Strided&) const = default;
};  // of the storage, whatever the base
struct Reinterpret {
  DType dtype = DType::f32;
  bool operator==(const Reinterpret&) const = default;
};  // the same bytes
struct AsReal {
  bool operator==(const AsReal&) const = default;
};  // complex numbers as pairs of reals: a last dimension of two
struct AsComplex {
  bool operator==(const AsComplex&) const = default;
};  // the inverse
struct Conjugate {
  bool operator==(const Conjugate&) const = default;
};  // the same elements with other signs: read and written by computing
struct Stop {
  bool operator==(const Stop&) const = default;
};  // no gradient passes: detach
using Part = std::variant<Permute, Slice, Expand, Reshape, Diagonal, Unfold, Strided, Reinterpret, AsReal, AsComplex,
                          Conjugate, Stop>;
void append_text(std::string& out, const Part& part);
}  // namespace remap

struct IndexMap {
  std::vector<remap::Part> parts;  // from the base to the result; none: the same tensor

  IndexMap();
  IndexMap(std::vector<remap::Part> parts);
  IndexMap(const IndexMap&);
  IndexMap(IndexMap&&) noexcept;
  IndexMap& operator=(const IndexMap&);
  IndexMap& operator=(IndexMap&&) noexcept;
  ~IndexMap();
  bool operator==(const IndexMap&) const;
};

/// Strides by which `sizes` are a view of a tensor with the given sizes and strides; none where only a copy could do
/// it.
std::optional<Sizes> view_strides(const Sizes& base_sizes, const Sizes& base_strides, const Sizes& sizes);
/// Whether a part is a view of a tensor that lies like this: its sizes may be, and its strides not.
bool is_view(const remap::Part& part, const TensorMeta& base);
/// What a part makes of a meta. Fails where the part is no view of it.
TensorMeta viewed(const remap::Part& part, const TensorMeta& base);
TensorMeta viewed(const IndexMap& map, const TensorMeta& base);
/// Two elements of the result may be one element of the base: such a view cannot be written.
bool overlaps(const remap::Part& part, const TensorMeta& base);

}  // namespace tenon
