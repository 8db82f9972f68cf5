#include <gtest/gtest.h>
#include <tenon/tenon.h>
#include <unistd.h>

#include <filesystem>

namespace {

using tenon::Tensor;

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("tenon_arrays_" + std::to_string(::getpid()) + name)).string();
}

class Arrays : public testing::TestWithParam<const char*> {};

TEST_P(Arrays, TensorsThatAreWrittenAreReadBack) {
  std::string path = temporary(GetParam());
  float memory[6] = {1, 2, 3, 4, 5, 6};
  tenon::save_tensors({{"rows", tenon::tensor({{1, 2}, {3, 4}})},
                       {"turned", tenon::from_blob(memory, {3, 2}, {1, 3}, tenon::f32)},
                       {"flag", tenon::scalar(true)}},
                      path);
  std::map<std::string, Tensor> back = tenon::load_tensors(path);
  std::filesystem::remove(path);
  ASSERT_EQ(back.size(), 3u);
  EXPECT_EQ(back["rows"].vector<int>(), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(back["turned"].vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(back["turned"].size(0), 3);
  EXPECT_TRUE(back["flag"].item<bool>());
}
INSTANTIATE_TEST_SUITE_P(Formats, Arrays, testing::Values(".npz", ".safetensors"));

TEST(ArrayFiles, OnlySafetensorsKeepsBfloat) {
  Tensor x = tenon::full({2}, 1.5, tenon::bf16);
  EXPECT_THROW(tenon::save_tensors({{"x", x}}, temporary(".npz")), tenon::Error);
  std::string path = temporary("b.safetensors");
  tenon::save_tensors({{"x", x}}, path);
  EXPECT_EQ(tenon::load_tensors(path)["x"].dtype(), tenon::bf16);
  std::filesystem::remove(path);
}

// A recording of real PyTorch: results and, of the joint program, gradients.
TEST(ArrayFiles, RecordedInputsGiveTheRecordedResults) {
  std::string data = std::string(TENON_TEST_DATA) + "/pt2/";
  tenon::Module model = tenon::load(data + "torch-2.15/a_mlp.pt2");
  auto inputs = tenon::load_tensors(data + "reference/a_mlp.in.npz"),
       outputs = tenon::load_tensors(data + "reference/a_mlp.out.npz");
  Tensor y = model(inputs.begin()->second), expected = outputs["output_0"].to(tenon::f32);
  ASSERT_EQ(y.numel(), expected.numel());
  for (size_t i = 0; i < y.span<float>().size(); ++i) EXPECT_NEAR(y.span<float>()[i], expected.span<float>()[i], 1e-5f);
}

}  // namespace
