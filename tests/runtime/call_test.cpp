// Wrong calls: a status and a sentence that names the culprit, never a wrong answer or a write elsewhere.
#include <gtest/gtest.h>

#include <functional>

#include "runtime/verify.h"
#include "tenon/package/artifact.h"
#include "tests/runtime/sample_call.h"

namespace tenon::package {
namespace {

class Call : public testing::Test {
 protected:
  std::vector<std::byte> bytes = sample_bytes();
  rt::Program program = rt::Program::open_memory(bytes.data(), bytes.size());
  rt::State state{program};
  rt::Session session{program};
  SampleCall call{8};
  std::vector<float> y = std::vector<float>(64 * 3, -1.0f);
  std::vector<tenon_tensor> inputs = call.inputs(), outputs = std::vector<tenon_tensor>(5);

  tenon_status status = TENON_OK;
  std::string message() {
    std::vector<tenon_tensor> given = outputs;
    status = tenon_session_run(session.get(), state.get(), inputs.data(), inputs.size(), given.data(), given.size());
    std::string text = status == TENON_OK ? "" : tenon_last_error();
    for (size_t i = 0; i < given.size(); ++i)
      if (!outputs[i].data) tenon_output_release(&given[i]);
    return text;
  }
  tenon_tensor own_output() { return rt::tensor(y.data(), {8, 3}); }
  /// The session works after an error as before.
  void TearDown() override { expect_sample(session, state, 8); }
};

TEST_F(Call, a_good_one_has_no_message) {
  outputs[0] = own_output();
  EXPECT_EQ(message(), "");
}

TEST_F(Call, too_few_inputs) {
  inputs.pop_back();
  EXPECT_EQ(message(), "expected 2 inputs, got 1");
  EXPECT_EQ(status, TENON_INVALID_ARGUMENT);
}

TEST_F(Call, too_few_outputs) {
  outputs.pop_back();
  EXPECT_EQ(message(), "expected 5 outputs, got 4");
}

TEST_F(Call, another_dtype) {
  inputs[0].dtype = TENON_F64;
  EXPECT_EQ(message(), "input 'x': expected f32, got f64");
}

TEST_F(Call, a_dtype_that_does_not_exist) {
  inputs[0].dtype = 99;
  EXPECT_EQ(message(), "input 'x': expected f32, got ?");
}

TEST_F(Call, another_rank) {
  inputs[0].rank = 3;
  EXPECT_EQ(message(), "input 'x': expected 2 dimensions, got 3");
}

TEST_F(Call, another_size) {
  inputs[0].sizes[1] = 5;
  inputs[0].strides[0] = 5;
  EXPECT_EQ(message(), "input 'x': expected size 4 in dimension 1, got 5");
}

TEST_F(Call, sizes_that_do_not_agree) {
  inputs[1].sizes[0] = 7;
  EXPECT_EQ(message(), "input 'ids': expected size 8 in dimension 0, got 7");
}

TEST_F(Call, a_size_out_of_range) {
  inputs[0].sizes[0] = 65;
  EXPECT_EQ(message(), "input 'x': size 0 is 65, but s0 may be 1 to 64");
  inputs[0].sizes[0] = 0;
  EXPECT_EQ(message(), "input 'x': size 0 is 0, but s0 may be 1 to 64");
}

TEST_F(Call, a_negative_size) {
  inputs[0].sizes[0] = -8;
  EXPECT_EQ(message(), "input 'x': its sizes or strides are negative or too large");
}

TEST_F(Call, a_size_beyond_memory) {
  inputs[0].sizes[0] = INT64_MAX;
  inputs[0].strides[0] = INT64_MAX;
  EXPECT_EQ(message(), "input 'x': its sizes or strides are negative or too large");
}

TEST_F(Call, no_data) {
  inputs[0].data = nullptr;
  EXPECT_EQ(message(), "input 'x': its data is NULL");
}

TEST_F(Call, data_off_its_alignment) {
  inputs[0].data = reinterpret_cast<char*>(call.x.data()) + 1;
  EXPECT_EQ(message(), "input 'x': its data is not aligned to the 4 bytes of f32");
}

TEST_F(Call, data_aligned_to_its_element_alone_works) {
  std::vector<float> shifted(call.x.size() + 1);
  std::copy(call.x.begin(), call.x.end(), shifted.begin() + 1);
  inputs[0].data = shifted.data() + 1;
  EXPECT_EQ(message(), "");
}

TEST_F(Call, strides) {
  inputs[0].strides[0] = 5;
  EXPECT_EQ(message(), "input 'x': expected a contiguous tensor; copy it into one");
}

TEST_F(Call, strides_of_dimensions_of_size_one_do_not_matter) {
  inputs[0].sizes[0] = inputs[1].sizes[0] = 1;
  inputs[0].strides[0] = inputs[1].strides[0] = 77;
  EXPECT_EQ(message(), "");
}

TEST_F(Call, an_output_of_another_size) {
  outputs[0] = rt::tensor(y.data(), {9, 3});
  EXPECT_EQ(message(), "output 'y': expected size 8 in dimension 0, got 9");
}

TEST_F(Call, an_output_of_another_dtype) {
  outputs[0] = own_output();
  outputs[0].dtype = TENON_I32;
  EXPECT_EQ(message(), "output 'y': expected f32, got i32");
}

TEST_F(Call, an_output_over_an_input) {
  outputs[0] = rt::tensor(call.x.data() + 4, {8, 3});
  EXPECT_EQ(message(), "output 'y' is written, but overlaps input 'x'; hand in memory of its own");
}

TEST_F(Call, an_output_over_another) {
  outputs[0] = own_output();
  outputs[1] = rt::tensor(y.data() + 23, std::vector<int64_t>{});
  EXPECT_EQ(message(), "output 'y' is written, but overlaps output 'total'; hand in memory of its own");
}

TEST_F(Call, outputs_side_by_side) {
  outputs[0] = own_output();
  outputs[1] = rt::tensor(y.data() + 24, std::vector<int64_t>{});
  EXPECT_EQ(message(), "");
}

TEST_F(Call, memory_for_an_output_whose_size_depends_on_data) {
  outputs[3] = rt::tensor(y.data(), {8});
  EXPECT_EQ(message(),
            "output 'positive': its sizes depend on data, so its memory is allocated by the run; set data to NULL");
}

TEST_F(Call, an_index_out_of_range_is_named_and_nothing_is_read_there) {
  call.ids[6] = 5;
  outputs[0] = own_output();
  EXPECT_EQ(message(), "index of the table: index 5 at [6] of 'ids' is out of range; expected 0 to 4");
  EXPECT_EQ(status, TENON_CHECK_FAILED);
  call.ids[6] = INT64_MIN;
  EXPECT_EQ(message(),
            "index of the table: index -9223372036854775808 at [6] of 'ids' is out of range; expected 0 to 4");
  for (size_t i = 24; i < y.size(); ++i) EXPECT_EQ(y[i], -1.0f);
}

TEST_F(Call, no_state) {
  EXPECT_EQ(tenon_session_run(session.get(), nullptr, inputs.data(), 2, outputs.data(), 5), TENON_INVALID_ARGUMENT);
  EXPECT_STREQ(tenon_last_error(), "tenon_session_run: state is NULL");
}

TEST_F(Call, null_everywhere_is_an_error_not_a_crash) {
  EXPECT_EQ(tenon_session_run(nullptr, nullptr, nullptr, 0, nullptr, 0), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(tenon_session_run(session.get(), state.get(), nullptr, 2, outputs.data(), 5), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(tenon_session_run(session.get(), state.get(), inputs.data(), 2, nullptr, 5), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(tenon_program_open(nullptr, nullptr, nullptr), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(tenon_program_open_memory(nullptr, 0, nullptr, nullptr), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(tenon_state_create(nullptr, nullptr), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(tenon_session_create(nullptr, nullptr), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(tenon_state_get(nullptr, nullptr, nullptr), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(tenon_program_input_info(program.get(), 9, nullptr), TENON_INVALID_ARGUMENT);
  tenon_program_close(nullptr);
  tenon_state_destroy(nullptr);
  tenon_session_destroy(nullptr);
  tenon_pool_destroy(nullptr);
  tenon_output_release(nullptr);
}

TEST_F(Call, no_memory_for_an_output) {
  tenon_session_set_output_allocator(
      session.get(), [](void*, size_t, size_t) -> void* { return nullptr; }, nullptr);
  EXPECT_EQ(message(), "output 'y': no memory for 96 bytes");
  EXPECT_EQ(status, TENON_OUT_OF_MEMORY);
  tenon_session_set_output_allocator(session.get(), nullptr, nullptr);
}

TEST(Open, a_missing_file) {
  tenon_program* program = nullptr;
  EXPECT_EQ(tenon_program_open("/nowhere/model.so", nullptr, &program), TENON_IO);
  EXPECT_STREQ(tenon_last_error(), "'/nowhere/model.so' cannot be read: No such file or directory");
  EXPECT_EQ(tenon_program_open("/", nullptr, &program), TENON_IO);
  EXPECT_EQ(program, nullptr);
}

TEST(Open, a_file_that_is_no_artifact) {
  tenon_program* program = nullptr;
  EXPECT_EQ(tenon_program_open(TENON_LIBRARIES "/libtenon_runtime.so", nullptr, &program), TENON_INVALID_FILE);
  EXPECT_NE(std::string(tenon_last_error()).find("is not an artifact of Tenon"), std::string::npos)
      << tenon_last_error();
}

TEST(Open, tables_and_code_of_another_bit) {
  std::vector<std::byte> bytes = sample_bytes();
  Artifact artifact = Artifact::parse(bytes, "file");
  auto refused = [&](uint64_t offset) {
    bytes[offset] ^= std::byte{0x10};
    tenon_program* program = nullptr;
    tenon_status status = tenon_program_open_memory(bytes.data(), bytes.size(), nullptr, &program);
    bytes[offset] ^= std::byte{0x10};
    if (program) tenon_program_close(program);
    return status == TENON_INVALID_FILE || status == TENON_UNSUPPORTED;
  };
  for (uint64_t i = 0; i < artifact.image().tables_size; ++i)
    ASSERT_TRUE(refused(artifact.image().tables_offset + i)) << "byte " << i << " of the tables";
  for (const tn_load& load : std::span(artifact.image().loads).first(artifact.image().load_count))
    for (uint64_t i = 0; load.executable && i < load.size; ++i)
      ASSERT_TRUE(refused(load.offset + i)) << "byte " << i << " of the code";
}

TEST(Open, options_of_unknown_size) {
  std::vector<std::byte> bytes = sample_bytes();
  tenon_program* program = nullptr;
  tenon_options options{};
  EXPECT_EQ(tenon_program_open_memory(bytes.data(), bytes.size(), &options, &program), TENON_INVALID_ARGUMENT);
  EXPECT_STREQ(tenon_last_error(), "tenon_options: struct_size is 0; set it to sizeof(tenon_options)");
}

TEST(Open, options_of_an_older_caller) {
  std::vector<std::byte> bytes = sample_bytes();
  tenon_options options{.struct_size = offsetof(tenon_options, huge_pages)};
  options.huge_pages = 12345;  // not there in the caller's version
  auto program = rt::Program::open_memory(bytes.data(), bytes.size(), &options);
  rt::State state(program);
  rt::Session session(program);
  expect_sample(session, state, 3);
}

}  // namespace
}  // namespace tenon::package
