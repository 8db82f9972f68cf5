#include <set>

#include "call.h"
#include "kernels/sort.h"

namespace tenon::kernels {
namespace {

TEST(KernelImages, every_family_is_there_for_every_target_under_the_same_names) {
  ASSERT_FALSE(images().empty());
  ASSERT_EQ(images().size() % TENON_TARGET_COUNT, 0u);
  for (size_t i = 0; i < images().size(); ++i) {
    const Image& image = images()[i];
    EXPECT_EQ(image.target, static_cast<int>(i % TENON_TARGET_COUNT)) << image.family;
    const Image& first = images()[i / TENON_TARGET_COUNT * TENON_TARGET_COUNT];
    EXPECT_EQ(image.family, first.family);
    ASSERT_EQ(image.symbols.size(), first.symbols.size()) << image.family;
    for (size_t k = 0; k < image.symbols.size(); ++k) {
      EXPECT_EQ(image.symbols[k].name, first.symbols[k].name);
      EXPECT_EQ(image.symbols[k].kind, first.symbols[k].kind);
    }
  }
}

TEST(KernelImages, entries_start_with_endbr64) {
  for (const Image& image : images())
    for (const Symbol& symbol : image.symbols) {
      ASSERT_LE(symbol.offset + symbol.size, image.bytes.size());
      EXPECT_EQ(std::memcmp(image.bytes.data() + symbol.offset, "\xf3\x0f\x1e\xfa", 4), 0) << symbol.name;
    }
}

TEST(KernelImages, every_function_is_found_by_its_name) {
  std::set<std::string_view> names;
  for (const Image& image : images())
    for (const Symbol& symbol : image.symbols) {
      names.insert(symbol.name);
      const std::byte* code = image.bytes.data() + symbol.offset;
      if (symbol.kind == Kind::kernel) {
        EXPECT_EQ(reinterpret_cast<const std::byte*>(find(symbol.name, image.target)), code);
        EXPECT_EQ(find_host(symbol.name, image.target), nullptr);
      } else {
        EXPECT_EQ(reinterpret_cast<const std::byte*>(find_host(symbol.name, image.target)), code);
        EXPECT_EQ(find(symbol.name, image.target), nullptr);
      }
    }
  EXPECT_TRUE(names.count("sort_f32"));
  EXPECT_EQ(find("sort_f31"), nullptr);
  EXPECT_EQ(find("sort_f32"), find("sort_f32", machine_target()));
}

TEST(KernelImages, the_bytes_work_wherever_they_are_placed) {
  for (const Image& image : images()) {
    if (image.family != "sort" || image.target > machine_target()) continue;
    size_t page = 4096, size = (image.bytes.size() + 2 * page) / page * page;
    char* place = static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memcpy(place + 64, image.bytes.data(), image.bytes.size());
    ASSERT_EQ(mprotect(place, size, PROT_READ | PROT_EXEC), 0);
    const Symbol* symbol = nullptr;
    for (const Symbol& s : image.symbols)
      if (s.name == "sort_f32") symbol = &s;
    ASSERT_NE(symbol, nullptr);
    auto kernel = reinterpret_cast<tenon_kernel>(place + 64 + symbol->offset);

    float in[100], sorted[100];
    int64_t indices[100];
    for (int i = 0; i < 100; ++i) in[i] = static_cast<float>(i * 37 % 100);
    void* buffers[] = {in, sorted, indices};
    std::vector<int64_t> params =
        words(SortParams{.length = 100, .in_stride = 1, .values_stride = 1, .indices_stride = 1});
    Guarded<char> scratch(sort_scratch_fixed + 100 * sort_scratch_per_element);
    tenon_args args{buffers, params.data(), scratch.data(), nullptr};
    EXPECT_EQ(kernel(&args, 0, 1), TENON_KERNEL_OK);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(sorted[i], static_cast<float>(i));
    munmap(place, size);
  }
}

}  // namespace
}  // namespace tenon::kernels
