// A row says how a public function can be called wrongly, or why it cannot. Files of rows go by the headers they are
// about.
#pragma once
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/tenon.h>

#include <functional>
#include <limits>

namespace tenon_test {

using namespace tenon;  // NOLINT: as the programs of users are written

using Calls = std::vector<std::function<void()>>;
struct Row {
  std::string function;  // by its name in public_functions.h
  Calls calls;
  std::string why_none;  // why it, or its other overloads, cannot be called wrongly
  ErrorKind kind = ErrorKind::call;
};
inline Row never(const char* function, const char* why) { return {function, {}, why}; }
inline void append(std::vector<Row>& rows, std::vector<Row> more) {
  rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

inline Tensor x() { return tensor({{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}}); }
inline Tensor whole() { return tensor({1, 2, 3}); }
inline Tensor leaf() { return x().requires_grad_(); }
inline const Tensor none;
inline const DType no_dtype = static_cast<DType>(200);
inline constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();

std::vector<Row> tensor_rows();
std::vector<Row> arithmetic_rows();
std::vector<Row> autograd_rows();
std::vector<Row> value_rows();
std::vector<Row> file_rows();
std::vector<Row> program_rows();
std::vector<Row> dim_rows();
std::vector<Row> unflatten_rows();
std::vector<Row> training_rows();
std::vector<Row> loss_rows();
std::vector<Row> layer_rows();
std::vector<Row> module_rows();
std::vector<Row> init_rows();
std::vector<Row> optimizer_rows();

}  // namespace tenon_test
