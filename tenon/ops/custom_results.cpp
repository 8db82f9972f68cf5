#include "tenon/ops/custom_results.h"

#include <algorithm>

#include "tenon/rules/symbolic_shapes.h"
#include "tenon/sym/evaluate.h"
#include "tenon/sym/parse.h"

namespace tenon {
namespace {

// Parts between commas that no bracket encloses.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> out;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] == '[' || text[i] == '(')) ++depth;
    if (i < text.size() && (text[i] == ']' || text[i] == ')')) --depth;
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      out.push_back(trim(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  if (out.size() == 1 && out[0].empty()) out.clear();
  return out;
}

bool is_name(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

sym::Expr named(std::string_view name) { return sym::Expr::symbol(name); }

const SchemaArg* argument(const Schema& schema, std::string_view name) {
  int at = schema.find(name);
  return at < 0 ? nullptr : &schema.args[static_cast<size_t>(at)];
}
bool is_tensor(const SchemaArg* arg) { return arg && arg->type.kind == TypeKind::tensor && !arg->type.list; }

}  // namespace

std::vector<CustomResults::Dim> CustomResults::dims_of(const Schema& schema, std::string_view text, bool of_result) {
  std::vector<Dim> out;
  for (std::string_view part : parts_of(text)) {
    if (part == "...") {
      require(std::none_of(out.begin(), out.end(), [](const Dim& d) { return d.kind == Dim::Kind::rest; }),
              "... stands twice in ", quoted(text));
      out.push_back({Dim::Kind::rest});
      continue;
    }
    if (part == "?" && of_result) {
      out.push_back({Dim::Kind::told});
      continue;
    }
    bool number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    if (!of_result) {
      require(number || is_name(part), "expected the name of a size, a number or ..., got ", quoted(part));
      if (!number && std::find(names_.begin(), names_.end(), named(part)) == names_.end())
        names_.push_back(named(part));
      out.push_back({Dim::Kind::size, number ? sym::parse(part) : named(part)});
      continue;
    }
    std::vector<sym::Expr> known = names_;
    for (const SchemaArg& arg : schema.args)
      if (arg.type.kind == TypeKind::integer && !arg.type.list && !arg.type.optional) {
        require(std::find(names_.begin(), names_.end(), named(arg.name)) == names_.end(), quoted(arg.name),
                " is the name of an argument and of a size");
        known.push_back(named(arg.name));
      }
    Dim dim{Dim::Kind::size, sym::parse(part, known)};
    for (sym::Expr s : sym::symbols_of(dim.size)) {
      require(std::find(known.begin(), known.end(), s) != known.end(), "the size ", quoted(s.name()),
              " is named by no argument");
      bool size = std::find(names_.begin(), names_.end(), s) != names_.end();
      if (!size && std::find(integers_.begin(), integers_.end(), s) == integers_.end()) integers_.push_back(s);
    }
    out.push_back(dim);
  }
  return out;
}

CustomResults::CustomResults(const Schema& schema, std::string_view text) {
  size_t arrow = text.find("->");
  auto split = [](std::string_view part) {  // before and within the brackets
    size_t open = part.find('[');
    if (open == part.npos) return std::pair(trim(part), std::optional<std::string_view>());
    require(part.back() == ']', "expected ] at the end of ", quoted(part));
    return std::pair(trim(part.substr(0, open)), std::optional(part.substr(open + 1, part.size() - open - 2)));
  };
  if (arrow != text.npos)
    for (std::string_view part : parts_of(text.substr(0, arrow))) {
      auto [name, dims] = split(part);
      require(is_tensor(argument(schema, name)) && dims,
              "expected the name of a tensor and its sizes, as in x[n, k], got ", quoted(part));
      patterns_.push_back({std::string(name), dims_of(schema, *dims, false)});
    }
  for (std::string_view part : parts_of(arrow == text.npos ? text : text.substr(arrow + 2))) {
    auto [words, dims] = split(part);
    Result result;
    size_t space = words.find(' ');
    std::string_view first = words.substr(0, space), second = space == words.npos ? "" : trim(words.substr(space));
    if (is_tensor(argument(schema, first))) result.like = first;
    else result.dtype = dtype_of(first);
    require(!result.like.empty() || result.dtype, "expected an argument or a dtype, got ", quoted(first));
    if (!second.empty()) {
      require(result.like.empty() && is_tensor(argument(schema, second)), "expected the name of a tensor, got ",
              quoted(second));
      result.like = second;
    }
    if (dims) result.dims = dims_of(schema, *dims, true);
    require(result.dims || !result.like.empty(), "expected the sizes of ", quoted(part));
    results_.push_back(std::move(result));
  }
  require(results_.size() == schema.returns.size(), "expected ", schema.returns.size(), " results, got ",
          results_.size());
}

struct CustomResults::Found {
  std::vector<sym::Replacement> sizes;
  std::optional<Sizes> rest;

  void meet(const MetaCall& call, const Pattern& pattern) {
    if (!call.given(pattern.arg.c_str())) return;
    const TensorMeta& meta = call.meta(pattern.arg.c_str());
    auto open =
        std::find_if(pattern.dims.begin(), pattern.dims.end(), [](const Dim& d) { return d.kind == Dim::Kind::rest; });
    size_t own = pattern.dims.size() - (open != pattern.dims.end());
    call.require(open == pattern.dims.end() ? meta.rank() == own : meta.rank() >= own, pattern.arg, ": expected ",
                 open == pattern.dims.end() ? "" : "at least ", own, " dimensions, got ", meta);
    size_t d = 0;
    for (const Dim& dim : pattern.dims) {
      if (dim.kind == Dim::Kind::rest) {
        Sizes here;
        for (size_t i = 0; i < meta.rank() - own; ++i) here.push_back(meta.sizes[d + i]);
        call.require(!rest || *rest == here, pattern.arg, ": expected the sizes ", *rest, " in front, got ", here);
        rest = here;
        d += here.size();
        continue;
      }
      SymInt size = meta.sizes[d++];
      if (dim.size.is_int()) {
        call.require(!statically_true(sym::ne(size, dim.size)), pattern.arg, ": expected a size of ", dim.size,
                     ", got ", meta);
        continue;
      }
      auto same = std::find_if(sizes.begin(), sizes.end(), [&](const auto& s) { return s.first == dim.size; });
      if (same == sizes.end()) sizes.emplace_back(dim.size, size);
      else
        call.require(!statically_true(sym::ne(size, same->second)), pattern.arg, ": expected ", dim.size, " to be ",
                     same->second, ", got ", meta);
    }
  }
};

std::vector<TensorMeta> CustomResults::metas(const MetaCall& call) const {
  Found found;
  for (const Pattern& pattern : patterns_) found.meet(call, pattern);
  for (sym::Expr integer : integers_)
    found.sizes.emplace_back(integer, call.integer(std::string(integer.name()).c_str()));
  std::vector<TensorMeta> out;
  for (const Result& result : results_) {
    TensorMeta like;
    if (!result.like.empty()) like = call.meta(result.like.c_str());
    Sizes sizes = like.sizes;
    if (result.dims) {
      sizes.clear();
      for (const Dim& dim : *result.dims) switch (dim.kind) {
          case Dim::Kind::size: sizes.push_back(sym::substitute(dim.size, found.sizes)); break;
          case Dim::Kind::told: sizes.push_back(data_dependent_size()); break;
          case Dim::Kind::rest:
            call.require(found.rest.has_value(), "its results have sizes ... that no argument gave");
            for (const SymInt& size : *found.rest) sizes.push_back(size);
            break;
        }
    }
    out.push_back(make_meta(result.dtype.value_or(like.dtype), std::move(sizes)));
  }
  return out;
}

}  // namespace tenon
