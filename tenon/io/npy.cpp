#include "tenon/io/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "tenon/base/error.h"
#include "tenon/base/file.h"
#include "tenon/io/zip.h"

namespace tenon {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr size_t most_dimensions = 64;  // as in NumPy
constexpr uint64_t most_bytes = uint64_t{1} << 60;

struct Type {
  std::string_view name, spelling;  // spelling: NumPy's, without the byte order
  size_t size;
  size_t word;  // what is turned around in the other byte order
};
constexpr Type types[] = {
    {"f16", "f2", 2, 2}, {"f32", "f4", 4, 4},  {"f64", "f8", 8, 8}, {"i8", "i1", 1, 1},     {"i16", "i2", 2, 2},
    {"i32", "i4", 4, 4}, {"i64", "i8", 8, 8},  {"u8", "u1", 1, 1},  {"u16", "u2", 2, 2},    {"u32", "u4", 4, 4},
    {"u64", "u8", 8, 8}, {"bool", "b1", 1, 1}, {"c64", "c8", 8, 4}, {"c128", "c16", 16, 8},
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Header {
  std::string_view descr;
  bool fortran = false;
  std::vector<int64_t> sizes;
};

/// Reads the header, a Python dict of a string, a boolean and a tuple of integers, and nothing beyond those.
struct HeaderReader {
  std::string_view rest;
  const std::string& subject;

  template <class... Parts>
  void need(bool ok, const Parts&... parts) const {
    if (!ok) [[unlikely]]
      fail(subject, ": not a valid .npy header: ", parts...);
  }
  void skip_space() {
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  }
  bool accept(std::string_view word) {
    skip_space();
    if (!starts_with(rest, word)) return false;
    rest.remove_prefix(word.size());
    return true;
  }
  void expect_word(std::string_view word) {
    if (!accept(word)) need(false, "expected ", word, " at ", quoted(rest, 20));
  }
  std::string_view string() {
    skip_space();
    char quote = rest.empty() ? '\0' : rest.front();
    need(quote != '[', "a structured dtype is not read; save each field as its own array");
    need(quote == '\'' || quote == '"', "expected a string");
    size_t end = rest.find(quote, 1);
    need(end != std::string_view::npos, "a string does not end");
    std::string_view value = rest.substr(1, end - 1);
    need(value.find('\\') == std::string_view::npos, "a string holds an escape");
    rest.remove_prefix(end + 1);
    return value;
  }
  std::vector<int64_t> sizes() {
    std::vector<int64_t> values;
    expect_word("(");
    bool comma = true;
    while (!accept(")")) {
      need(comma, "the sizes lack a comma");
      skip_space();
      int64_t value = 0;
      auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
      need(error == std::errc() && value >= 0, "a size is not an integer of 0 or more");
      rest.remove_prefix(static_cast<size_t>(end - rest.data()));
      accept("L");  // Python 2 wrote long integers so
      values.push_back(value);
      need(values.size() <= most_dimensions, "more than ", most_dimensions, " dimensions");
      comma = accept(",");
    }
    need(values.size() != 1 || comma, "the sizes are a number in parentheses, not a tuple");
    return values;
  }
  Header read() {
    Header header;
    bool descr = false, order = false, shape = false;
    auto once = [&](bool& seen, std::string_view key) {
      if (seen) need(false, "the key ", key, " occurs twice");
      seen = true;
    };
    expect_word("{");
    bool comma = true;
    while (!accept("}")) {
      need(comma, "the keys lack a comma");
      std::string_view key = string();
      expect_word(":");
      if (key == "descr") {
        once(descr, key);
        header.descr = string();
      } else if (key == "fortran_order") {
        once(order, key);
        header.fortran = accept("True");
        if (!header.fortran) expect_word("False");
      } else if (key == "shape") {
        once(shape, key);
        header.sizes = sizes();
      } else {
        need(false, "the key ", quoted(key), " is unknown");
      }
      comma = accept(",");
    }
    need(descr && order && shape, "expected the keys descr, fortran_order and shape");
    skip_space();
    need(rest == "\n" || rest.empty(), "text follows the dict");
    return header;
  }
};

void turn_words(std::byte* bytes, size_t size, size_t word) {
  for (size_t at = 0; at + word <= size; at += word) std::reverse(bytes + at, bytes + at + word);
}

std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes, bool fortran) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t k = 0; k < sizes.size(); ++k) {
    size_t i = fortran ? k : sizes.size() - 1 - k;
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

// Elements, or an error where that many could not be addressed even if no size were 0.
int64_t checked_count(const std::vector<int64_t>& sizes, size_t item, const std::string& subject) {
  uint64_t product = item;
  bool empty = false;
  for (int64_t size : sizes) {
    if (size == 0) empty = true;
    else if (__builtin_mul_overflow(product, static_cast<uint64_t>(size), &product) || product > most_bytes)
      fail(subject, ": an array of sizes ", sizes, " is too large");
  }
  return empty ? 0 : static_cast<int64_t>(product / item);
}

}  // namespace

bool looks_like_npy(std::span<const std::byte> bytes) { return starts_with(as_text(bytes), magic); }

Array read_npy(std::span<const std::byte> file, const std::string& subject, std::shared_ptr<const void> owner) {
  require(looks_like_npy(file), subject, ": not an .npy file: it does not start with \\x93NUMPY");
  auto cut = [&](size_t size) { require(file.size() >= size, subject, ": the .npy file ends inside its header"); };
  cut(8);
  auto version = static_cast<unsigned>(file[6]);
  require(version >= 1 && version <= 3, subject, ": .npy version ", version, " is not read, only 1 to 3");
  size_t start = version == 1 ? 10 : 12;
  cut(start);
  uint32_t header_size = 0;
  std::memcpy(&header_size, file.data() + 8, start - 8);
  cut(start + header_size);
  Header header = HeaderReader{as_text(file.subspan(start, header_size)), subject}.read();
  std::span<const std::byte> payload = file.subspan(start + header_size);

  char order = header.descr.empty() ? '\0' : header.descr.front();
  const Type* type = std::find_if(std::begin(types), std::end(types), [&](const Type& t) {
    return header.descr.size() > 1 && t.spelling == header.descr.substr(1);
  });
  if (type == std::end(types) || std::string_view("<>|=").find(order) == std::string_view::npos ||
      (order == '|' && type->size > 1))
    fail(subject, ": the NumPy dtype ", quoted(header.descr),
         " is not read; convert the array to a boolean, integer, float or complex dtype first");
  int64_t count = checked_count(header.sizes, type->size, subject);
  uint64_t size = static_cast<uint64_t>(count) * type->size;
  require(payload.size() == size, subject, ": an array of ", type->name, " and sizes ", header.sizes, " takes ", size,
          " bytes, found ", payload.size());

  Array array{std::string(type->name), std::move(header.sizes), {}, payload, std::move(owner)};
  array.strides = dense_strides(array.sizes, header.fortran);
  bool turned = order == '>' && type->word > 1;
  bool aligned = reinterpret_cast<uintptr_t>(payload.data()) % type->word == 0;
  bool odd =
      type->name == "bool" && std::any_of(payload.begin(), payload.end(), [](std::byte b) { return b > std::byte{1}; });
  if (!array.owner || turned || !aligned || odd) {
    auto copy = std::make_shared<std::vector<std::byte>>(payload.begin(), payload.end());
    if (turned) turn_words(copy->data(), copy->size(), type->word);
    if (odd)
      for (std::byte& b : *copy) b = b != std::byte{0} ? std::byte{1} : std::byte{0};
    array.bytes = *copy;
    array.owner = copy;
  }
  return array;
}

std::vector<NamedArray> read_npz(std::span<const std::byte> file, const std::string& subject,
                                 std::shared_ptr<const void> owner) {
  struct Kept {  // deflated content belongs to the archive
    ZipArchive archive;
    std::shared_ptr<const void> file;
  };
  auto kept = std::make_shared<Kept>(Kept{ZipArchive(file, subject), owner});
  std::vector<NamedArray> arrays;
  for (const ZipEntry& entry : kept->archive.entries()) {
    std::span<const std::byte> bytes = kept->archive.bytes(entry);
    std::string_view name = entry.name;
    if (ends_with(name, ".npy")) name.remove_suffix(4);
    std::shared_ptr<const void> keeper;
    if (owner) keeper = kept;
    arrays.push_back({std::string(name), read_npy(bytes, text(subject, ": ", quoted(entry.name)), std::move(keeper))});
  }
  return arrays;
}

std::vector<NamedArray> load_arrays(const std::string& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  if (looks_like_npy(file->bytes())) return {{"", read_npy(file->bytes(), path, file)}};
  if (looks_like_zip(file->bytes())) return read_npz(file->bytes(), path, file);
  fail(path, ": neither an .npy nor an .npz file");
}

namespace {

// The bytes in C order.
std::string gathered(const Array& array, size_t item, size_t count) {
  std::string out;
  out.reserve(count * item);
  std::vector<int64_t> index(array.sizes.size());
  int64_t at = 0;
  for (size_t k = 0; k < count; ++k) {
    out += as_text(array.bytes.subspan(static_cast<size_t>(at) * item, item));
    for (size_t i = index.size(); i-- > 0;) {
      at += array.strides[i];
      if (++index[i] < array.sizes[i]) break;
      at -= array.strides[i] * array.sizes[i];
      index[i] = 0;
    }
  }
  return out;
}

}  // namespace

std::string npy_bytes(const Array& array) {
  const Type* type =
      std::find_if(std::begin(types), std::end(types), [&](const Type& t) { return t.name == array.dtype; });
  require(type != std::end(types), "an array of ", array.dtype, " cannot be written as .npy: NumPy has no such dtype");
  expect(array.sizes.size() == array.strides.size(), "an array has ", array.sizes, " sizes and ", array.strides,
         " strides");
  auto count = static_cast<size_t>(checked_count(array.sizes, type->size, "cannot write .npy"));
  uint64_t reach = count ? 1 : 0;
  for (size_t i = 0; count && i < array.sizes.size(); ++i) {
    expect(array.strides[i] >= 0, "an array with the strides ", array.strides);
    reach += static_cast<uint64_t>(array.strides[i]) * static_cast<uint64_t>(array.sizes[i] - 1);
  }
  expect(reach * type->size <= array.bytes.size(), "an array of sizes ", array.sizes, " and strides ", array.strides,
         " over ", array.bytes.size(), " bytes");

  // A stride along one element says nothing.
  auto same = [&](const std::vector<int64_t>& strides) {
    for (size_t i = 0; i < strides.size(); ++i)
      if (array.sizes[i] != 1 && strides[i] != array.strides[i]) return false;
    return true;
  };
  bool c_order = count == 0 || same(dense_strides(array.sizes, false));
  bool fortran = !c_order && same(dense_strides(array.sizes, true));

  std::string header = text("{'descr': '", type->size == 1 ? '|' : '<', type->spelling,
                            "', 'fortran_order': ", fortran ? "True" : "False", ", 'shape': (");
  for (size_t i = 0; i < array.sizes.size(); ++i) header += text(i ? ", " : "", array.sizes[i]);
  header += array.sizes.size() == 1 ? ",), }" : "), }";
  if (!array.sizes.empty()) {  // NumPy leaves room for the outer size to grow in place
    size_t digits = text(fortran ? array.sizes.back() : array.sizes.front()).size();
    header.append(21 - digits, ' ');
  }
  header.append(64 - (11 + header.size()) % 64, ' ');  // with the newline, a multiple of 64
  header += '\n';
  std::string out(magic);
  out += '\1';
  out += '\0';
  out += static_cast<char>(header.size());
  out += static_cast<char>(header.size() >> 8);
  out += header;
  if (c_order || fortran) out += as_text(array.bytes.first(count * type->size));
  else out += gathered(array, type->size, count);
  return out;
}

void save_npy(const std::string& path, const Array& array) { write_file_atomically(path, npy_bytes(array)); }

void save_npz(const std::string& path, std::span<const NamedArray> arrays) {
  ZipWriter writer(path, ZipStyle::plain);
  for (const NamedArray& named : arrays) writer.add(named.name + ".npy", npy_bytes(named.array));
  writer.commit();
}

}  // namespace tenon
