// Elements that a mask chooses: their places, their values, indices by masks, writes through them.
#include "kernels/host/call.h"

namespace tenon::kernels {
namespace {

// Whether an element is other than zero: any bit set, the sign of a float aside.
bool is_set(const tenon_tensor& t, int64_t offset) {
  int64_t n = size_of(t.dtype);
  const auto* at = static_cast<const unsigned char*>(t.data) + offset * n;
  bool floating = t.dtype >= TENON_F16 && !(t.dtype >= TENON_C32 && t.dtype <= TENON_C128);
  for (int64_t i = 0; i < n; ++i)
    if (floating && i == n - 1 ? at[i] & 0x7f : at[i]) return true;
  return false;
}

int64_t count_set(const tenon_tensor& t) {
  int64_t found = 0;
  Walk at(t);
  for (int64_t i = 0, n = count(t); i < n; ++i, at.next()) found += is_set(t, at.offset());
  return found;
}

bool is_mask(const tenon_tensor& t) { return t.dtype == TENON_BOOL || t.dtype == TENON_U8; }

// Sizes that two tensors are broadcast to; false where they do not go together.
bool broadcast(const tenon_tensor& t, int32_t& rank, int64_t* sizes) {
  if (t.rank > rank) {
    int32_t more = t.rank - rank;
    for (int32_t d = rank - 1; d >= 0; --d) sizes[d + more] = sizes[d];
    for (int32_t d = 0; d < more; ++d) sizes[d] = 1;
    rank = t.rank;
  }
  for (int32_t d = 0; d < t.rank; ++d) {
    int64_t& size = sizes[rank - t.rank + d];
    if (size == 1) size = t.sizes[d];
    else if (t.sizes[d] != 1 && t.sizes[d] != size) return false;
  }
  return true;
}

int64_t product(int32_t rank, const int64_t* sizes) {
  int64_t n = 1;
  for (int32_t d = 0; d < rank; ++d) n *= sizes[d];
  return n;
}

// Codes of the sentences that index and index_put have.
enum { out_of_range = 1, apart, mask_apart, values_apart, too_many };

/// How index tensors and the tensor they index meet; a mask is the same as the places where it is true.
class Indices {
 public:
  int prepare(Call& call, const tenon_tensor& self, const tenon_tensor* indices, int64_t given) {
    self_ = &self;
    int32_t dim = 0;
    for (int64_t i = 0; i < given; ++i) {
      const tenon_tensor& t = indices[i];
      if (!is_present(t)) {
        if (dim++ >= self.rank) return refuse(call, too_many, int64_t{self.rank});
        continue;
      }
      if (int status = is_mask(t) ? take_mask(call, t, dim) : take_index(call, t, dim)) return status;
    }
    for (int32_t d = 0; d < self.rank; ++d)
      if (!values_[d]) rest_[rest_count_++] = d;
    arrange();
    return lay_out(call);
  }

  int32_t rank() const { return rank_; }
  const int64_t* sizes() const { return sizes_; }
  int64_t elements() const { return product(rank_, sizes_); }

  /// Calls visit(offset in self) for each element of what is indexed, in row-major order.
  template <class Visit>
  void each(Visit&& visit) const {
    int64_t at[TENON_MAX_RANK] = {}, n = elements();
    for (int64_t i = 0; i < n; ++i) {
      int64_t offset = 0, in_shape = 0;
      for (int32_t d = 0; d < rank_; ++d) {
        if (d >= first_ && d < first_ + shape_rank_) in_shape = in_shape * shape_[d - first_] + at[d];
        else offset += at[d] * strides_[d];
      }
      visit(offset + (named_count_ ? table_[in_shape] : 0));
      int32_t d = rank_ - 1;
      while (d >= 0 && ++at[d] == sizes_[d]) at[d--] = 0;
    }
  }

 private:
  int take_mask(Call& call, const tenon_tensor& mask, int32_t& dim) {
    bool fits = dim + mask.rank <= self_->rank;
    for (int32_t d = 0; fits && d < mask.rank; ++d) fits = mask.sizes[d] == self_->sizes[dim + d];
    if (!fits) return refuse(call, mask_apart, int64_t{dim});
    int64_t found = count_set(mask), next = 0;
    for (int32_t d = 0; d < mask.rank; ++d) {
      values_[dim + d] = work<int64_t>(call, found);
      if (!values_[dim + d]) return TENON_KERNEL_MEMORY;
      shapes_[dim + d] = {};
      shapes_[dim + d].rank = 1;
      shapes_[dim + d].sizes[0] = found;
      shapes_[dim + d].strides[0] = 1;
    }
    Walk at(mask);
    for (int64_t i = 0, n = count(mask); i < n; ++i, at.next()) {
      if (!is_set(mask, at.offset())) continue;
      int64_t place = i;
      for (int32_t d = mask.rank - 1; d >= 0; --d) {
        values_[dim + d][next] = place % mask.sizes[d];
        place /= mask.sizes[d];
      }
      ++next;
    }
    dim += mask.rank;
    return 0;
  }

  int take_index(Call& call, const tenon_tensor& t, int32_t& dim) {
    if (dim >= self_->rank) return refuse(call, too_many, int64_t{self_->rank});
    if (t.dtype != TENON_I64 && t.dtype != TENON_I32 && count(t) != 0) return TENON_KERNEL_ARITHMETIC;
    int64_t* own = elements_of(call, t);
    if (!own) return TENON_KERNEL_MEMORY;
    int64_t size = self_->sizes[dim];
    for (int64_t i = 0, n = count(t); i < n; ++i) {
      if (own[i] < -size || own[i] >= size) return refuse(call, out_of_range, own[i], int64_t{dim}, size);
      if (own[i] < 0) own[i] += size;
    }
    values_[dim] = own;
    shapes_[dim] = t;
    for (int64_t d = t.rank, stride = 1; d-- > 0; stride *= t.sizes[d]) shapes_[dim].strides[d] = stride;
    ++dim;
    return 0;
  }
  static int64_t* elements_of(Call& call, const tenon_tensor& t) { return kernels::elements<int64_t>(call, t); }

  // Dimensions that are named lie together where they stand together, else in front.
  void arrange() {
    int32_t named[TENON_MAX_RANK];
    for (int32_t d = 0; d < self_->rank; ++d)
      if (values_[d]) named[named_count_++] = d;
    bool adjacent = named_count_ == 0 || named[named_count_ - 1] - named[0] + 1 == named_count_;
    first_ = adjacent && named_count_ ? named[0] : 0;
    for (int32_t i = 0; i < named_count_; ++i) named_[i] = named[i];
  }

  int lay_out(Call& call) {
    for (int32_t i = 0; i < named_count_; ++i)
      if (!broadcast(shapes_[named_[i]], shape_rank_, shape_)) return refuse(call, apart);
    if (rest_count_ + shape_rank_ > TENON_MAX_RANK) return TENON_KERNEL_ARITHMETIC;
    for (int32_t i = 0; i < first_; ++i) push(self_->sizes[rest_[i]], self_->strides[rest_[i]]);
    for (int32_t i = 0; i < shape_rank_; ++i) push(shape_[i], 0);
    for (int32_t i = first_; i < rest_count_; ++i) push(self_->sizes[rest_[i]], self_->strides[rest_[i]]);
    int64_t n = product(shape_rank_, shape_);
    table_ = zeroed_work<int64_t>(call, n);
    if (!table_) return TENON_KERNEL_MEMORY;
    for (int32_t i = 0; i < named_count_; ++i) {
      int32_t d = named_[i];
      Walk at(shapes_[d], shape_rank_, shape_, 0);
      for (int64_t k = 0; k < n; ++k, at.next()) table_[k] += values_[d][at.offset()] * self_->strides[d];
    }
    return 0;
  }
  void push(int64_t size, int64_t stride) {
    sizes_[rank_] = size;
    strides_[rank_++] = stride;
  }

  const tenon_tensor* self_ = nullptr;
  int64_t* values_[TENON_MAX_RANK] = {};  // per dimension of self: which places; null where it is taken whole
  tenon_tensor shapes_[TENON_MAX_RANK];   // of those
  int32_t rest_[TENON_MAX_RANK], rest_count_ = 0, named_[TENON_MAX_RANK], named_count_ = 0, first_ = 0;
  int32_t shape_rank_ = 0, rank_ = 0;
  int64_t shape_[TENON_MAX_RANK];  // of all indices together
  int64_t sizes_[TENON_MAX_RANK], strides_[TENON_MAX_RANK];
  int64_t* table_ = nullptr;  // where in self the named dimensions lead, per element of the shape
};

}  // namespace

TENON_HOST_FUNCTION(nonzero) {
  (void)lo, (void)hi;
  const tenon_tensor& x = call->inputs[0];
  int64_t sizes[2] = {count_set(x), x.rank}, found = 0;
  if (int status = call->allocate(call, 0, 2, sizes)) return status;
  tenon_tensor& out = call->results[0];
  auto* to = static_cast<int64_t*>(out.data);
  Walk at(x);
  for (int64_t i = 0, n = count(x); i < n; ++i, at.next()) {
    if (!is_set(x, at.offset())) continue;
    int64_t place = i;
    for (int32_t d = x.rank - 1; d >= 0; --d) {
      to[found * out.strides[0] + d * out.strides[1]] = place % x.sizes[d];
      place /= x.sizes[d];
    }
    ++found;
  }
  return 0;
}

TENON_HOST_FUNCTION(masked_select) {
  (void)lo, (void)hi;
  const tenon_tensor &x = call->inputs[0], &mask = call->inputs[1];
  int32_t rank = 0;
  int64_t sizes[TENON_MAX_RANK], found = 0, size = size_of(x.dtype);
  if (!broadcast(x, rank, sizes) || !broadcast(mask, rank, sizes)) return TENON_KERNEL_ARITHMETIC;
  int64_t n = product(rank, sizes);
  Walk counting(mask, rank, sizes, 0);
  for (int64_t i = 0; i < n; ++i, counting.next()) found += is_set(mask, counting.offset());
  if (int status = call->allocate(call, 0, 1, &found)) return status;
  tenon_tensor& out = call->results[0];
  Walk at(x, rank, sizes, 0), hit(mask, rank, sizes, 0);
  for (int64_t i = 0, next = 0; i < n; ++i, at.next(), hit.next())
    if (is_set(mask, hit.offset())) copy_element(out.data, next++ * out.strides[0], x.data, at.offset(), size);
  return 0;
}

// self, indices...
TENON_HOST_FUNCTION(index_by_masks) {
  (void)lo, (void)hi;
  const tenon_tensor& x = call->inputs[0];
  Indices indices;
  if (int status = indices.prepare(*call, x, call->inputs + 1, call->input_count - 1)) return status;
  if (int status = call->allocate(call, 0, indices.rank(), indices.sizes())) return status;
  tenon_tensor& out = call->results[0];
  Walk to(out);
  int64_t size = size_of(x.dtype);
  indices.each([&](int64_t offset) {
    copy_element(out.data, to.offset(), x.data, offset, size);
    to.next();
  });
  return 0;
}

// self, indices..., values; accumulate
TENON_HOST_FUNCTION(put_by_masks) {
  (void)lo, (void)hi;
  const tenon_tensor& x = call->inputs[0];
  tenon_tensor& out = call->results[0];
  tenon_tensor values = call->inputs[call->input_count - 1];
  bool accumulate = Params(*call).flag();
  if (!same_sizes(x, out) || x.dtype != out.dtype || values.dtype != x.dtype) return TENON_KERNEL_ARITHMETIC;
  int64_t size = size_of(x.dtype), n = count(x);
  // Sums of narrow numbers are made in wide ones.
  bool narrow = accumulate && (x.dtype == TENON_F16 || x.dtype == TENON_BF16);
  tenon_tensor target = out;
  if (narrow) {
    target.dtype = TENON_F32;
    target.data = work<float>(*call, n);
    if (!target.data) return TENON_KERNEL_MEMORY;
    for (int64_t d = out.rank, stride = 1; d-- > 0; stride *= out.sizes[d]) target.strides[d] = stride;
  }
  Walk from(x), to(target);
  for (int64_t i = 0; i < n; ++i, from.next(), to.next()) {
    if (narrow) store(target.data, target.dtype, to.offset(), load<double>(x.data, x.dtype, from.offset()));
    else copy_element(target.data, to.offset(), x.data, from.offset(), size);
  }
  Indices indices;
  if (int status = indices.prepare(*call, target, call->inputs + 1, call->input_count - 2)) return status;
  while (values.rank > indices.rank() && values.sizes[0] == 1) {  // leading dimensions that say nothing
    for (int32_t d = 1; d < values.rank; ++d) {
      values.sizes[d - 1] = values.sizes[d];
      values.strides[d - 1] = values.strides[d];
    }
    --values.rank;
  }
  bool fits = values.rank <= indices.rank();
  for (int32_t d = 0; fits && d < values.rank; ++d)
    fits = values.sizes[d] == 1 || values.sizes[d] == indices.sizes()[indices.rank() - values.rank + d];
  if (!fits) return refuse(*call, values_apart);
  Walk value(values, indices.rank(), indices.sizes(), 0);
  bool floating = is_floating(x.dtype);
  indices.each([&](int64_t offset) {
    if (!accumulate) copy_element(target.data, offset, values.data, value.offset(), size);
    else if (target.dtype == TENON_F32)
      static_cast<float*>(target.data)[offset] +=
          static_cast<float>(load<double>(values.data, values.dtype, value.offset()));
    else if (floating)
      static_cast<double*>(target.data)[offset] += load<double>(values.data, values.dtype, value.offset());
    else
      store(
          target.data, target.dtype, offset,
          load<int64_t>(target.data, target.dtype, offset) + load<int64_t>(values.data, values.dtype, value.offset()));
    value.next();
  });
  if (narrow) {
    Walk back(out), wide(target);
    for (int64_t i = 0; i < n; ++i, back.next(), wide.next())
      store(out.data, out.dtype, back.offset(), load<double>(target.data, target.dtype, wide.offset()));
  }
  return 0;
}

}  // namespace tenon::kernels
