// A wrong call of every public function: each ends in an Error of the right kind that says what to do. A function of
// the headers that has no row fails the test, so that a new one gets its wrong call with it.
#include <gtest/gtest.h>

#include <set>

#include "tests/wrong_calls/public_functions.h"
#include "tests/wrong_calls/rows.h"

namespace tenon_test {
namespace {

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> out;
    for (auto* each : {tensor_rows, arithmetic_rows, autograd_rows, value_rows, file_rows, program_rows, dim_rows,
                       unflatten_rows, training_rows, loss_rows, layer_rows, module_rows, init_rows, optimizer_rows})
      append(out, each());
    return out;
  }();
  return all;
}

TEST(WrongCalls, HaveARowForEveryPublicFunction) {
  std::map<std::string, int> functions = public_functions(TENON_PUBLIC_HEADERS);
  ASSERT_GT(functions.size(), 250u);
  std::map<std::string, std::size_t> calls;
  std::set<std::string> excused;
  for (const Row& row : rows()) {
    EXPECT_TRUE(functions.contains(row.function)) << row.function << " is in no header";
    calls[row.function] += row.calls.size();
    if (!row.why_none.empty()) excused.insert(row.function);
  }
  for (const auto& [function, overloads] : functions) {
    ASSERT_TRUE(calls.contains(function)) << "no wrong call of " << function << "; give it a row above";
    if (excused.contains(function)) continue;
    EXPECT_GE(calls[function], static_cast<std::size_t>(overloads))
        << function << " has an overload without a wrong call";
  }
}

TEST(WrongCalls, EndInErrorsThatSayWhatToDo) {
  for (const Row& row : rows())
    for (std::size_t i = 0; i < row.calls.size(); ++i) {
      SCOPED_TRACE(row.function + ", call " + std::to_string(i));
      try {
        row.calls[i]();
        ADD_FAILURE() << "no error";
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), row.kind) << e.what();
        EXPECT_GT(std::string(e.what()).size(), 20u) << e.what();
        EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
      } catch (const std::exception& e) { ADD_FAILURE() << "not an Error: " << e.what(); }
    }
}

}  // namespace
}  // namespace tenon_test
