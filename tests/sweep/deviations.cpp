#include "tests/sweep/deviations.h"

namespace tenon::sweep {
namespace {

constexpr char undecided[] = "which of equal elements is named is left open";
constexpr char rounding[] = "zero: PyTorch's is the rounding error of a difference";
constexpr char few_digits[] = "PyTorch's series is good to 8 digits only (compared with mpmath)";

constexpr char conjugated[] = "conjugates are computed at once; programs see writes through them";

const Deviation deviations[] = {
    {"aten::as_strided_scatter", "gradient", "", "of self",
     "PyTorch passes self the gradient of what src replaces, and none of the rest"},
    {"aten::kthvalue", "results", "", "result 1", undecided},
    {"aten::layer_norm", "gradient", "input=f64[1]", "", rounding},
    {"aten::native_layer_norm", "results", "16[1], normalized_shape=[1]", "", rounding},
    {"aten::native_layer_norm", "gradient", "input=f64[1, 2]", "", rounding},
    {"aten::smooth_l1_loss_backward", "gradient", "", "of grad_output", rounding},
    {"aten::upsample_bilinear2d.vec", "results", "input=u8", "",
     "PyTorch interpolates bytes with weights of few bits: its results are off by up to 1"},
    {"aten::_native_batch_norm_legit", "", "running_mean=bf16", "",
     "PyTorch rounds statistics to bf16 before it uses them"},
    {"aten::native_batch_norm", "", "running_mean=bf16", "", "PyTorch rounds statistics to bf16 before it uses them"},
    {"aten::special_digamma", "gradient", "f64", "", few_digits},
    {"aten::special_psi", "gradient", "f64", "", few_digits},
    {"aten::special_bessel_j0", "", "f64", "", few_digits},
    {"aten::special_bessel_j1", "", "f64", "", few_digits},
    {"aten::special_bessel_y1", "", "f64", "", few_digits},
    {"aten::special_i0e", "gradient", "16[", "", "a difference of nearly equal numbers, in 16 bits"},
    {"aten::special_i1e", "gradient", "16[", "", "a difference of nearly equal numbers, in 16 bits"},
    {"aten::matrix_exp", "results", "16[", "expected nan", "PyTorch's is wrong in 16 bits, also for small matrices"},
    {"aten::tensor_split.tensor_indices_or_sections", "perturbed", "", "known only when the program runs",
     "refused: the number of results depends on data"},
    {"quantized_decomposed::choose_qparams_per_token", "", "", "expected f32",
     "PyTorch's kernel gives f32 where its exporter notes f64 and i64 down, which the nodes behind it are made for"},
    {"aten::_conj", "results", "", "expected to share", conjugated, true},
    {"aten::mH", "results", "", "expected to share", conjugated, true},
    {"aten::matrix_H", "results", "", "expected to share", conjugated, true},
    {"aten::adjoint", "results", "", "expected to share", conjugated, true},
    {"aten::silu_", "gradient", "", "",
     "PyTorch refuses the gradient of silu of complex numbers, and forgets to conjugate here", true},
    {"aten::resolve_conj", "results", "", "expected to share",
     "which tensors are conjugated is not told: of all a copy", true},
    {"aten::equal", "", "", "is not supported", "refused: a program does not decide by the values of tensors"},
    {"aten::allclose", "", "", "is not supported", "refused: a program does not decide by the values of tensors"},
};

constexpr char draws[] = "draws numbers: tests/ops/random_test.cpp looks at their distribution";
constexpr char ours[] = "PyTorch has no such operator: the forms that decompose to it are recorded";
constexpr char asserts[] = "returns nothing: tests/lower and tests/session look at the check";

constexpr char graphs[] = "takes graphs: tests/aot/control_test.cpp and tests/interop have programs with it";

constexpr char calls[] =
    "calls another operator: tests/ops/custom_ops_test.cpp and examples/custom_op have programs with it";

constexpr char typed[] = "calls another operator: tests/interop has a program with it";
constexpr char batches[] = "has a meaning among others only: tests/aot/control_test.cpp and tests/interop have batches";

constexpr char directions[] = "has a meaning among others only: tests/interop has programs with a jvp";
constexpr char lists[] =
    "each element is what the operator it is named after gives: tests/ops/foreach_test.cpp compares all of them";

struct Unrecorded {
  const char *op, *why;  // a name that ends with * is that of a family
};
const Unrecorded unrecorded[] = {
    {"aten::_assert_async", asserts},
    {"aten::_assert_async.msg", asserts},
    {"aten::sym_constrain_range", asserts},
    {"aten::sym_constrain_range_for_size", asserts},
    {"torch_nn::_linear_cross_entropy_batch_chunked*",
     "a layer and its loss: a program of tests/interop has both forms"},
    {"prims::_make_token", "holds nothing: a program of tests/interop has tokens of its own"},
    {"prims::_sink_tokens", asserts},
    {"aten::bernoulli.Tensor", draws},
    {"aten::bernoulli.p", draws},
    {"aten::cauchy", draws},
    {"aten::exponential", draws},
    {"aten::geometric", draws},
    {"aten::log_normal", draws},
    {"aten::normal.float_Tensor", draws},
    {"aten::normal_functional", draws},
    {"aten::random", draws},
    {"aten::random.from", draws},
    {"aten::random.to", draws},
    {"aten::randperm", draws},
    {"aten::rrelu_with_noise_functional", draws},
    {"aten::uniform", draws},
    {"aten::stft.center", "torch.stft pads and calls the other form, which is recorded; only C++ calls this one"},
    {"aten::sym_is_contiguous", "a number, not a tensor: a program of tests/interop asks for it"},
    {"aten::sym_stride.int", "a number, not a tensor: programs of tests/interop take strides"},
    {"aten::view_copy.dtype", "the operator database has no such call: view.dtype is recorded"},
    {"aten::where", "the number of results depends on data: nonzero is recorded"},
    {"higher_order::associative_scan", graphs},
    {"higher_order::auto_functionalized", calls},
    {"higher_order::auto_functionalized_v2", calls},
    {"higher_order::with_effects", calls},
    {"higher_order::out_dtype", typed},
    {"functorch::_add_batch_dim", batches},
    {"functorch::_remove_batch_dim", batches},
    {"functorch::_vmap_increment_nesting", batches},
    {"functorch::_vmap_decrement_nesting", batches},
    {"functorch::lazy_load_decompositions", batches},
    {"functorch::_make_dual", directions},
    {"functorch::_unpack_dual", directions},
    {"functorch::_unwrap_for_grad", directions},
    {"functorch::_jvp_increment_nesting", directions},
    {"functorch::_jvp_decrement_nesting", directions},
    {"functorch::_enter_dual_level", directions},
    {"functorch::_exit_dual_level", directions},
    {"aten::_make_dual", directions},
    {"aten::_unpack_dual", directions},
    {"aten::_foreach_*", lists},
    {"aten::_print", "returns nothing: tests/e2e/test_run.py looks at what is printed"},
    {"aten::result_type*", "a dtype, not a tensor: a program of tests/interop has it"},
    {"aten::promote_types", "a dtype, not a tensor: a program of tests/interop has it"},
    {"higher_order::print", "returns nothing: tests/e2e/test_run.py looks at what is printed"},
    {"higher_order::hints_wrapper", graphs},
    {"higher_order::invoke_quant_packed", graphs},
    {"higher_order::invoke_subgraph", graphs},
    {"higher_order::strict_mode", graphs},
    {"higher_order::while_loop_stack_output", graphs},
    {"tenon::fill_diagonal", ours},
    {"tenon::print", ours},
    {"tenon::resized", ours},
    {"tenon::resized_as", ours},
    {"tenon::overlay", ours},
    {"tenon::polygamma", ours},
    {"tenon::unpack_bits", ours},
    {"tenon::unpack_int4", ours},
    {"tenon::random_int", ours},
    {"tenon::random_key", ours},
    {"tenon::random_normal", ours},
    {"tenon::random_permutation", ours},
    {"tenon::random_uniform", ours},
    {"tenon::fourier", ours},
    {"tenon::interleave", ours},
};

constexpr const char* refused_complex[] = {
    "aten::_linalg_solve_ex",
    "aten::_lu_with_info",
    "aten::cholesky_inverse",
    "aten::cholesky_solve",
    "aten::geqrf",
    "aten::linalg_cholesky",
    "aten::linalg_cholesky_ex",
    "aten::linalg_cond",
    "aten::linalg_det",
    "aten::linalg_eigh",
    "aten::linalg_householder_product",
    "aten::linalg_ldl_factor",
    "aten::linalg_ldl_factor_ex",
    "aten::linalg_ldl_solve",
    "aten::linalg_lu",
    "aten::linalg_lu_factor",
    "aten::linalg_lu_factor_ex",
    "aten::linalg_lu_solve",
    "aten::linalg_matrix_rank.atol_rtol_float",
    "aten::linalg_matrix_rank.atol_rtol_tensor",
    "aten::linalg_matrix_sqrth",
    "aten::linalg_pinv.atol_rtol_float",
    "aten::linalg_pinv.atol_rtol_tensor",
    "aten::linalg_polar",
    "aten::linalg_slogdet",
    "aten::linalg_svd",
    "aten::logcumsumexp",
    "aten::logdet",
    "aten::lu_solve",
    "aten::lu_unpack",
    "aten::ormqr",
    "aten::svd",
    "aten::triangular_solve",
    "aten::pinverse",
};

}  // namespace

const char* why_unrecorded(const std::string& op) {
  for (const Unrecorded& row : unrecorded) {
    std::string_view name = row.op;
    bool family = name.back() == '*';
    if (family) name.remove_suffix(1);
    if (family ? op.starts_with(name) : op == name) return row.why;
  }
  return nullptr;
}

const Deviation* deviation(const std::string& op, const std::string& check, const std::string& call,
                           const std::string& message) {
  auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  for (const Deviation& d : deviations)
    if (op == d.op && (!*d.check || check == d.check) && has(call, d.call) && has(message, d.message)) return &d;
  return nullptr;
}

bool refused_of_complex(const std::string& op) {
  for (const char* name : refused_complex)
    if (op == name) return true;
  return false;
}

std::span<const Deviation> all_deviations() { return deviations; }

}  // namespace tenon::sweep
