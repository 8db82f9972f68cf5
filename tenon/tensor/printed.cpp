#include "tenon/tensor/printed.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tenon/base/text.h"

namespace tenon {
namespace {

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
  explicit Printer(const PrintedTensor& tensor)
      : tensor_(tensor), floating_(is_floating(tensor.dtype)), complex_(is_complex(tensor.dtype)) {
    for (int64_t size : tensor.sizes) count_ *= size;
    summarized_ = count_ > threshold;
  }

  std::string print(const std::vector<std::string>& more) {
    std::string out = "tensor(";
    std::vector<std::string> suffixes;
    bool empty = count_ == 0;
    if (empty) {
      out += "[]";
      std::vector<std::string> sizes;
      for (int64_t size : tensor_.sizes) sizes.push_back(std::to_string(size));
      if (rank() != 1) suffixes.push_back("size=(" + join(sizes, ", ") + ")");
    } else {
      visit(0, 0, [&](int64_t at) { see(at); });
      real_.settle(), imaginary_.settle();
      if (floating_) width_ = real_.width();
      if (complex_) width_ = real_.width() + imaginary_.width() + 1;
      out += lines(0, 0, prefix);
    }
    DType dtype = tensor_.dtype;
    bool usual =
        dtype == DType::f32 || (!empty && (dtype == DType::i64 || dtype == DType::boolean || dtype == DType::c64));
    if (!usual) suffixes.push_back(text("dtype=torch.", torch_name(dtype)));
    suffixes.insert(suffixes.end(), more.begin(), more.end());
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
  size_t rank() const { return tensor_.sizes.size(); }
  int64_t stride(size_t dim) const {
    int64_t out = 1;
    for (size_t d = dim + 1; d < rank(); ++d) out *= tensor_.sizes[d];
    return out;
  }
  // Indices of a dimension that are printed; -1 stands for the dots.
  std::vector<int64_t> shown(size_t dim) const {
    int64_t size = tensor_.sizes[dim];
    std::vector<int64_t> out;
    bool cut = summarized_ && size > 2 * edge;
    for (int64_t i = 0; i < size; ++i) {
      if (cut && i == edge) out.push_back(-1), i = size - edge;
      out.push_back(i);
    }
    return out;
  }

  void see(int64_t index) {
    auto at = static_cast<size_t>(index);
    if (floating_ || complex_) real_.see(tensor_.real[at]);
    if (complex_) imaginary_.see(tensor_.imaginary[at]);
    if (!floating_ && !complex_) width_ = std::max(width_, plain_integer(at).size());
  }
  std::string plain_integer(size_t at) const {
    if (tensor_.dtype == DType::boolean) return tensor_.integers[at] ? "True" : "False";
    return tensor_.dtype == DType::u64 ? std::to_string(static_cast<uint64_t>(tensor_.integers[at]))
                                       : std::to_string(tensor_.integers[at]);
  }
  std::string element(int64_t index) const {
    auto at = static_cast<size_t>(index);
    if (floating_) return real_(tensor_.real[at]);
    if (complex_) {
      std::string imaginary = imaginary_(tensor_.imaginary[at]) + "j";
      size_t start = imaginary.find_first_not_of(' ');
      bool negative = imaginary[start] == '-';
      return real_(tensor_.real[at]) + (negative ? "" : "+") + imaginary.substr(start);
    }
    std::string out = plain_integer(at);
    return std::string(width_ > out.size() ? width_ - out.size() : 0, ' ') + out;
  }

  std::string lines(size_t dim, int64_t at, size_t indent) const {
    if (rank() == 0) return element(0);
    if (dim + 1 == rank()) return row(at, indent);
    std::vector<std::string> parts;
    for (int64_t i : shown(dim)) parts.push_back(i < 0 ? "..." : lines(dim + 1, at + i * stride(dim), indent + 1));
    return "[" + join(parts, "," + std::string(rank() - dim - 1, '\n') + std::string(indent + 1, ' ')) + "]";
  }

  std::string row(int64_t at, size_t indent) const {
    int64_t per_line =
        std::max<int64_t>(1, (line_width - static_cast<int64_t>(indent)) / static_cast<int64_t>(width_ + 2));
    std::vector<std::string> rows, items;
    for (int64_t i : shown(rank() - 1)) {
      items.push_back(i < 0 ? " ..." : element(at + i));
      if (static_cast<int64_t>(items.size()) == per_line) rows.push_back(join(items, ", ")), items.clear();
    }
    if (!items.empty()) rows.push_back(join(items, ", "));
    return "[" + join(rows, ",\n" + std::string(indent + 1, ' ')) + "]";
  }

  const PrintedTensor& tensor_;
  bool floating_, complex_, summarized_ = false;
  int64_t count_ = 1;
  NumberFormat real_, imaginary_;
  size_t width_ = 1;
};

}  // namespace

std::string printed(const PrintedTensor& tensor, const std::vector<std::string>& suffixes) {
  return Printer(tensor).print(suffixes);
}

}  // namespace tenon
