// Powers and exponentials of matrices, and Vandermonde matrices.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/flip.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/linalg_complex.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/scan.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle matrix_power, matrix_exp;

namespace {

void require_square(const ArgsView& m, const TensorMeta& a) {
  m.require(a.rank() >= 2 && !differ(a.sizes[a.rank() - 1], a.sizes[a.rank() - 2]), "expected square matrices, got ",
            a);
}

Results power(Build& b) {
  Tensor a = b["self"];
  require_square(b, a.meta());
  int64_t n = b.constant("n");
  if (n == 0)
    return clone(expand(unit_matrix(a, a.size(-1), a.size(-1)), a.sizes()),
                 kw("memory_format", MemoryFormat::contiguous));
  if (n == 1) return clone(a, kw("memory_format", MemoryFormat::contiguous));
  if (n < 0) a = linalg_inv_ex(a, kw("check_errors", true))[0];
  uint64_t rest = n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  Tensor out;
  for (Tensor square = a; rest; rest >>= 1) {
    if (rest & 1) out = out ? matmul(out, square) : square;
    if (rest > 1) square = matmul(square, square);
  }
  return one(out);
}

// The derivative in the direction G is the upper right block of exp [A G; 0 A]; the gradient is that with Aᵀ.
Grads exponential_gradient(Vjp& v) {
  Tensor a = transposed(v["self"]), g = v.grad();
  SymInt n = a.size(-1);
  Tensor top = cat(std::vector<Tensor>{a, g}, -1), bottom = cat(std::vector<Tensor>{zeros_like(a), a}, -1);
  Tensor both = matrix_exp(cat(std::vector<Tensor>{top, bottom}, -2));
  return {narrow(narrow(both, -2, 0, n), -1, n, n)};
}

// 1, x, x², ...
Tensor powers(const Tensor& x, SymInt count) {
  Tensor from = is_differentiable(x.dtype()) ? x : to(x, DType::i64);
  Sizes sizes = joined(from.sizes(), {count - 1}), first = joined(from.sizes(), {1});
  Tensor more = cumprod(expand(unsqueeze(from, -1), sizes), -1);
  return cat(std::vector<Tensor>{ones(first, kw("dtype", from.dtype()), kw("device", from.meta().device)), more}, -1);
}

}  // namespace

void register_linalg_powers(Registry& ops) {
  ops.add(matrix_power, {
                            .schema = "linalg_matrix_power(Tensor self, int n) -> Tensor",
                            .kind = OpKind::composite,
                            .decompose = power,
                        });
  ops.alias(matrix_power, {"matrix_power"});
  ops.add(matrix_exp, {
                          .schema = "linalg_matrix_exp(Tensor self) -> Tensor",
                          .meta = [](MetaCall& m) -> Metas {
                            require_square(m, m.meta("self"));
                            m.require(is_floating(m.meta("self").dtype), "expected floating point matrices, got ",
                                      m.meta("self"));
                            return like(m.meta("self"), m.meta("self").sizes);
                          },
                          .vjp = {{"self", exponential_gradient}},
                          .host = {"linalg_matrix_exp"},
                          .complex = [](Build& b) -> Results {
                            require_square(b, b.meta("self"));
                            Tensor power = extracted(matrix_exp(embedded(b["self"])));
                            return clone(power, kw("memory_format", MemoryFormat::contiguous));
                          },
                      });
  ops.add({
      .schema = "matrix_exp(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return matrix_exp(b["self"]); },
  });
  ops.add({
      .schema = "linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor x = b["x"];
        b.require(x.dtype() != DType::boolean, "expected a tensor of numbers, got ", x.meta());
        if (x.rank() == 0) x = unsqueeze(x, 0);
        SymInt n = b.given("N") ? b.integer("N") : x.size(-1);
        b.require(!n.is_int() || n.as_int() > 1, "N: expected a number above 1, got ", n);
        return one(powers(x, n));
      },
  });
  ops.add({
      .schema = "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor x = b["x"];
        b.require(x.rank() == 1 && x.dtype() != DType::boolean, "expected numbers in 1 dimension, got ", x.meta());
        SymInt n = b.given("N") ? b.integer("N") : x.size(0);
        b.require(!n.is_int() || n.as_int() >= 0, "N: expected a number that is not negative, got ", n);
        if (n == SymInt(0))
          return one(zeros(Sizes{x.size(0), 0}, is_differentiable(x.dtype()) ? x : to(x, DType::i64)));
        Tensor table = powers(x, n);
        return b.flag("increasing") ? one(table) : flip(table, Sizes{1});
      },
  });
}

}  // namespace tenon
