// Tensors as text, laid out as PyTorch does with its default options: four digits, 80 columns, and of more than a
// thousand elements the first and last three in each dimension.
#include <tenon/autograd.h>
#include <tenon/complex.h>
#include <tenon/operators.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tenon/api/access.h"

namespace tenon::v0 {
namespace {

using detail::Access;

constexpr int64_t line_width = 80, edge = 3, threshold = 1000;
constexpr size_t prefix = 7;  // tensor(

std::string formatted(const char* format, double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char out[400];
  std::snprintf(out, sizeof out, format, value);
  return out;
}

/// How the numbers of one tensor are written: all with the same width and in the same notation.
class NumberFormat {
 public:
  void see(double value) {
    if (!std::isfinite(value) || value == 0) return;
    double size = std::abs(value);
    smallest_ = any_ ? std::min(smallest_, size) : size;
    largest_ = any_ ? std::max(largest_, size) : size;
    whole_ = whole_ && value == std::ceil(value);
    any_ = true;
    values_.push_back(value);
  }
  void settle() {
    scientific_ = any_ && (largest_ / smallest_ > 1000 || largest_ > 1e8 || (!whole_ && smallest_ < 1e-4));
    for (double value : values_) width_ = std::max(width_, plain(value).size());
    values_.clear();
  }
  std::string operator()(double value) const {
    std::string out = plain(value);
    return out.size() < width_ ? std::string(width_ - out.size(), ' ') + out : out;
  }
  std::string plain(double value) const {
    if (scientific_) return formatted("%.4e", value);
    if (!whole_) return formatted("%.4f", value);
    return formatted("%.0f", value) + (std::isfinite(value) ? "." : "");
  }
  size_t width() const { return width_; }

 private:
  bool any_ = false, whole_ = true, scientific_ = false;
  double smallest_ = 0, largest_ = 0;
  size_t width_ = 1;
  std::vector<double> values_;
};

class Printer {
 public:
  explicit Printer(const Tensor& tensor)
      : tensor_(tensor),
        dtype_(tensor.dtype()),
        floating_(tenon::is_floating(Access::unwrap(tensor).dtype())),
        complex_(tenon::is_complex(Access::unwrap(tensor).dtype())),
        summarized_(tensor.numel() > threshold) {
    NoGradGuard off;
    Tensor dense = tensor.contiguous();
    if (floating_) numbers_ = dense.to(DType::f64);
    else if (complex_ || dtype_ == DType::u64) numbers_ = dense;
    else numbers_ = dense.to(DType::i64);
  }

  std::string print() {
    std::string out = "tensor(";
    std::vector<std::string> suffixes;
    bool empty = tensor_.numel() == 0;
    if (empty) {
      out += "[]";
      if (tensor_.dim() != 1) suffixes.push_back("size=(" + detail::comma_separated(tensor_.sizes()) + ")");
    } else {
      visit(0, 0, [&](int64_t at) { see(at); });
      real_.settle(), imaginary_.settle();
      if (floating_) width_ = real_.width();
      if (complex_) width_ = real_.width() + imaginary_.width() + 1;
      out += lines(0, 0, prefix);
    }
    bool usual =
        dtype_ == DType::f32 || (!empty && (dtype_ == DType::i64 || dtype_ == DType::boolean || dtype_ == DType::c64));
    if (!usual) suffixes.push_back(tenon::text("dtype=torch.", tenon::torch_name(Access::unwrap(tensor_).dtype())));
    if (tensor_.requires_grad())
      suffixes.push_back(tensor_.is_leaf() ? "requires_grad=True" : "grad_fn=<" + tensor_.grad_fn() + ">");
    size_t last_line = out.size() - (out.rfind('\n') == out.npos ? -1 : out.rfind('\n')) + 1;
    for (const std::string& suffix : suffixes) {
      bool breaks = last_line + suffix.size() + 2 > static_cast<size_t>(line_width);
      out += breaks ? ",\n" + std::string(prefix, ' ') : ", ";
      out += suffix;
      last_line = breaks ? prefix + suffix.size() : last_line + suffix.size() + 2;
    }
    return out + ")";
  }

 private:
  template <class F>
  void visit(size_t dim, int64_t at, const F& f) const {
    if (dim == rank()) return f(at);
    for (int64_t i : shown(dim))
      if (i >= 0) visit(dim + 1, at + i * stride(dim), f);
  }
  size_t rank() const { return tensor_.sizes().size(); }
  int64_t stride(size_t dim) const {
    int64_t out = 1;
    for (size_t d = dim + 1; d < rank(); ++d) out *= tensor_.sizes()[d];
    return out;
  }
  // Indices of a dimension that are printed; -1 stands for the dots.
  std::vector<int64_t> shown(size_t dim) const {
    int64_t size = tensor_.sizes()[dim];
    std::vector<int64_t> out;
    bool cut = summarized_ && size > 2 * edge;
    for (int64_t i = 0; i < size; ++i) {
      if (cut && i == edge) out.push_back(-1), i = size - edge;
      out.push_back(i);
    }
    return out;
  }

  std::complex<double> complex_at(int64_t at) const {
    if (dtype_ == DType::c64) return numbers_.data<std::complex<float>>()[at];
    return numbers_.data<std::complex<double>>()[at];
  }
  void see(int64_t at) {
    if (floating_) real_.see(numbers_.data<double>()[at]);
    else if (complex_) {
      std::complex<double> value = complex_at(at);
      real_.see(value.real());
      imaginary_.see(value.imag());
    } else width_ = std::max(width_, plain_integer(at).size());
  }
  std::string plain_integer(int64_t at) const {
    if (dtype_ == DType::boolean) return numbers_.data<int64_t>()[at] ? "True" : "False";
    return dtype_ == DType::u64 ? std::to_string(numbers_.data<uint64_t>()[at])
                                : std::to_string(numbers_.data<int64_t>()[at]);
  }
  std::string element(int64_t at) const {
    if (floating_) return real_(numbers_.data<double>()[at]);
    if (complex_) {
      std::complex<double> value = complex_at(at);
      std::string imaginary = imaginary_(value.imag()) + "j";
      size_t start = imaginary.find_first_not_of(' ');
      bool negative = imaginary[start] == '-';
      return real_(value.real()) + (negative ? "" : "+") + imaginary.substr(start);
    }
    std::string out = plain_integer(at);
    return std::string(width_ > out.size() ? width_ - out.size() : 0, ' ') + out;
  }

  std::string lines(size_t dim, int64_t at, size_t indent) const {
    if (rank() == 0) return element(0);
    if (dim + 1 == rank()) return row(at, indent);
    std::vector<std::string> parts;
    for (int64_t i : shown(dim)) parts.push_back(i < 0 ? "..." : lines(dim + 1, at + i * stride(dim), indent + 1));
    return "[" + tenon::join(parts, "," + std::string(rank() - dim - 1, '\n') + std::string(indent + 1, ' ')) + "]";
  }

  std::string row(int64_t at, size_t indent) const {
    int64_t per_line =
        std::max<int64_t>(1, (line_width - static_cast<int64_t>(indent)) / static_cast<int64_t>(width_ + 2));
    std::vector<std::string> rows, items;
    for (int64_t i : shown(rank() - 1)) {
      items.push_back(i < 0 ? " ..." : element(at + i));
      if (static_cast<int64_t>(items.size()) == per_line) rows.push_back(tenon::join(items, ", ")), items.clear();
    }
    if (!items.empty()) rows.push_back(tenon::join(items, ", "));
    return "[" + tenon::join(rows, ",\n" + std::string(indent + 1, ' ')) + "]";
  }

  const Tensor& tensor_;
  DType dtype_;
  bool floating_, complex_, summarized_;
  Tensor numbers_;  // dense, real ones widened
  NumberFormat real_, imaginary_;
  size_t width_ = 1;
};

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor) return "None";
  return detail::guarded(ErrorKind::call, [&] { return Printer(tensor).print(); });
}

}  // namespace tenon::v0
