// Loads and stores stay inside their buffers: every buffer lies against a page that cannot be touched.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "tenon/base/error.h"
#include "tenon/base/text.h"
#include "tenon/compile/builder.h"
#include "tests/compile/run.h"
#include "tests/compile/samples.h"

namespace tenon::compile {
namespace {

/// Pages between two that cannot be touched; a buffer begins with the first byte or ends with the last.
class Guarded {
 public:
  explicit Guarded(size_t bytes, bool at_end) {
    size_t inner = (bytes + page - 1) / page * page + (bytes == 0 ? page : 0);
    size_ = inner + 2 * page;
    memory_ = static_cast<std::byte*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    expect(memory_ != MAP_FAILED && mprotect(memory_ + page, inner, PROT_READ | PROT_WRITE) == 0, "no memory");
    data = memory_ + page + (at_end ? inner - bytes : 0);
  }
  ~Guarded() { munmap(memory_, size_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  std::byte* data;

 private:
  static constexpr size_t page = 4096;
  std::byte* memory_;
  size_t size_;
};

enum class Form { plain, guarded, strided, gathered, updated };

// y[i] = x[i], by different ways of getting there.
Kernel copy(Element element, Form form) {
  Builder b(text("copy_", name(element)));
  uint32_t x = b.buffer("x", element, 0), y = b.buffer("y", element, 1, true);
  b.lanes(b.lo(), b.hi(), 32, {}, [&](Val i, const Vals&) -> Vals {
    Type type = computed_in(element);
    Place from{x, 0, true}, to{y, 0, true};
    if (form == Form::strided) from.stride = to.stride = b.param(0);
    if (form == Form::gathered) {
      from.over_lanes = to.over_lanes = false;
      from.offset = i;
      to.offset = convert(i, Type::i32);
    }
    Val even = (b.position() & 1) == 0, zero = b.constant(type, 0);
    Val value = form == Form::guarded ? b.load(from, even, zero) : b.load(from);
    if (form == Form::guarded) b.store(to, value, even);
    else if (form == Form::updated) b.update(type == Type::b1 ? Combine::any : Combine::add, to, value);
    else b.store(to, value);
    return {};
  });
  return b.finish();
}

TEST(GuardPages, no_access_leaves_its_buffer) {
  for (Isa isa : isas())
    for (int e = 0; e <= static_cast<int>(Element::f64); ++e)
      for (Form form : {Form::plain, Form::guarded, Form::strided, Form::gathered, Form::updated}) {
        auto element = static_cast<Element>(e);
        Kernel kernel = copy(element, form);
        MappedCode code(emit_native(std::span(&kernel, 1), isa));
        auto size = static_cast<size_t>(bytes_of(element));
        for (size_t n : {0u, 1u, 2u, 3u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 32u, 33u, 47u, 63u, 64u, 65u, 100u})
          for (bool at_end : {true, false}) {
            size_t stride = form == Form::strided ? 3 : 1, bytes = (n ? (n - 1) * stride + 1 : 0) * size;
            Guarded x(bytes, at_end), y(bytes, at_end);
            for (size_t i = 0; i < n; ++i)
              store_element(element, bits_of_integer(computed_in(element), static_cast<int64_t>(i % 3)),
                            x.data + i * stride * size);
            std::vector<Span> buffers = {{x.data, bytes}, {y.data, bytes}};
            ASSERT_EQ(
                call(code.function(), kernel, buffers, {static_cast<int64_t>(stride)}, 0, static_cast<int64_t>(n)), 0);
            for (size_t i = 0; i < n; ++i) {
              Bits wanted = form == Form::guarded && i % 2 ? 0 : load_element(element, x.data + i * stride * size);
              ASSERT_EQ(load_element(element, y.data + i * stride * size), wanted)
                  << name(element) << " form " << static_cast<int>(form) << " n " << n << " at " << i << " on "
                  << name(isa);
            }
          }
      }
}

TEST(GuardPages, softmax_and_bad_indices_stay_inside) {
  for (Isa isa : isas()) {
    std::vector<Kernel> kernels = {softmax_rows(), gather_rows(), scatter_add()};
    MappedCode code(emit_native(kernels, isa));
    for (size_t n : {1u, 5u, 16u, 31u, 33u, 70u}) {
      Guarded x(n * 4, true), y(n * 4, true), index(n * 8, true), table(n * 4, true);
      for (size_t i = 0; i < n; ++i) {
        float value = static_cast<float>(i);
        int64_t bad = i % 2 ? static_cast<int64_t>(i) * 1000000007 : -static_cast<int64_t>(i) - 1;
        std::memcpy(x.data + 4 * i, &value, 4);
        std::memcpy(index.data + 8 * i, &bad, 8);
      }
      auto count = static_cast<int64_t>(n);
      EXPECT_EQ(call(code.function(0), kernels[0], {{x.data, n * 4}, {y.data, n * 4}}, {count}, 0, 1), 0);
      std::vector<Span> buffers = {{x.data, n * 4}, {index.data, n * 8}, {y.data, n * 4}};
      EXPECT_EQ(call(code.function(1), kernels[1], buffers, {count, 1}, 0, count), 1);
      EXPECT_EQ(call(code.function(2), kernels[2], buffers, {count}, 0, count), 1);
    }
  }
}

}  // namespace
}  // namespace tenon::compile
