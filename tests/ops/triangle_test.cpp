#include <gtest/gtest.h>

#include "tenon/interp/eager.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

std::vector<int64_t> listed(const char* op, int64_t rows, int64_t columns, int64_t offset) {
  Tensor t = contiguous_copy(call_op(*registry().find(op), {rows, columns, offset, {}, {}, {}, {}}));
  return std::vector<int64_t>(t.data<int64_t>(), t.data<int64_t>() + t.numel().as_int());
}

TEST(TriangleIndices, AreThoseOfACountThroughTheMatrix) {
  interp::install();
  for (bool lower : {true, false})
    for (int64_t rows = 0; rows < 7; ++rows)
      for (int64_t columns = 0; columns < 7; ++columns)
        for (int64_t offset = -8; offset <= 8; ++offset) {
          std::vector<int64_t> expected, last;
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < columns; ++c)
              if (lower ? c - r <= offset : c - r >= offset) expected.push_back(r), last.push_back(c);
          expected.insert(expected.end(), last.begin(), last.end());
          ASSERT_EQ(listed(lower ? "aten::tril_indices" : "aten::triu_indices", rows, columns, offset), expected)
              << lower << " " << rows << "x" << columns << " from " << offset;
        }
}

TEST(TriangleIndices, OfALargeMatrixEndInItsCorner) {
  interp::install();
  std::vector<int64_t> all = listed("aten::tril_indices", 3000, 3000, 0);
  ASSERT_EQ(all.size(), size_t{3000 * 3001});
  EXPECT_EQ(all[all.size() / 2 - 1], 2999);
  EXPECT_EQ(all.back(), 2999);
}

}  // namespace
}  // namespace tenon
