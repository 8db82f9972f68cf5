// Tensors as text.
#include <tenon/autograd.h>
#include <tenon/complex.h>
#include <tenon/operators.h>

#include "tenon/api/access.h"
#include "tenon/tensor/printed.h"

namespace tenon::v0 {
namespace {

using detail::Access;

template <class T>
void split(const Tensor& numbers, PrintedTensor& out) {
  const auto* data = numbers.data<std::complex<T>>();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    out.real.push_back(static_cast<double>(data[i].real()));
    out.imaginary.push_back(static_cast<double>(data[i].imag()));
  }
}

PrintedTensor widened(const Tensor& tensor) {
  NoGradGuard off;
  const std::span<const Size> sizes = tensor.sizes();
  PrintedTensor out{Access::unwrap(tensor).dtype(), {sizes.begin(), sizes.end()}, {}, {}, {}};
  Tensor dense = tensor.contiguous();
  auto count = static_cast<size_t>(int64_t{tensor.numel()});
  if (tenon::is_floating(out.dtype)) {
    Tensor numbers = dense.to(DType::f64);
    out.real.assign(numbers.data<double>(), numbers.data<double>() + count);
  } else if (out.dtype == tenon::DType::c64) split<float>(dense, out);
  else if (out.dtype == tenon::DType::c128) split<double>(dense, out);
  else if (out.dtype == tenon::DType::u64) {
    for (size_t i = 0; i < count; ++i) out.integers.push_back(static_cast<int64_t>(dense.data<uint64_t>()[i]));
  } else {
    Tensor numbers = dense.to(DType::i64);
    out.integers.assign(numbers.data<int64_t>(), numbers.data<int64_t>() + count);
  }
  return out;
}

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor) return "None";
  return detail::guarded(ErrorKind::call, [&] {
    std::vector<std::string> suffixes;
    if (tensor.requires_grad())
      suffixes.push_back(tensor.is_leaf() ? "requires_grad=True" : "grad_fn=<" + tensor.grad_fn() + ">");
    return tenon::printed(widened(tensor), suffixes);
  });
}

}  // namespace tenon::v0
