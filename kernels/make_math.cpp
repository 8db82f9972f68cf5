// Writes the header behind kernels/math.h: make_math OUT.h
#include <filesystem>
#include <iostream>

#include "tenon/base/error.h"
#include "tenon/base/file.h"
#include "tenon/base/text.h"
#include "tenon/compile/emit_c.h"
#include "tenon/compile/math.h"

namespace tenon::compile {
namespace {

struct Function {
  std::string_view name;
  Val (*unary)(Val) = nullptr;
  Val (*binary)(Val, Val) = nullptr;
};

const Function functions[] = {
    {"exp", exp},
    {"exp2", exp2},
    {"expm1", expm1},
    {"sigmoid", sigmoid},
    {"tanh", tanh},
    {"sinh", sinh},
    {"cosh", cosh},
    {"erf", erf},
    {"erfc", erfc},
    {"erfinv", erfinv},
    {"lgamma", lgamma},
    {"digamma", digamma},
    {"log", log},
    {"log2", log2},
    {"log10", log10},
    {"log1p", log1p},
    {"asinh", asinh},
    {"acosh", acosh},
    {"atanh", atanh},
    {"sin", sin},
    {"cos", cos},
    {"tan", tan},
    {"asin", asin},
    {"acos", acos},
    {"atan", atan},
    {"sqrt", sqrt},
    {"floor", floor},
    {"ceil", ceil},
    {"trunc", trunc},
    {"round_even", round_even},
    {"abs", abs},
    {"pow", nullptr, pow},
    {"atan2", nullptr, atan2},
    {"hypot", nullptr, hypot},
    {"fmod", nullptr, fmod},
    {"nextafter", nullptr, nextafter},
    {"copysign", nullptr, copysign},
};

std::string header() {
  std::vector<Kernel> kernels;
  std::string overloads;
  for (const Function& f : functions)
    for (Element element : {Element::f32, Element::f64}) {
      std::string name = text(f.name, '_', compile::name(element));
      std::string_view type = element == Element::f32 ? "float" : "double";
      Builder builder(name);
      uint32_t x = builder.buffer("x", element, 0);
      if (f.unary) {
        uint32_t result = builder.buffer("result", element, 1, true);
        builder.store({result}, f.unary(builder.load({x})));
        overloads += text("inline ", type, ' ', f.name, '(', type, " x) { return math::", name, "(x); }\n");
      } else {
        uint32_t y = builder.buffer("y", element, 1), result = builder.buffer("result", element, 2, true);
        Val first = builder.load({x}), second = builder.load({y});
        builder.store({result}, f.binary(first, second));
        overloads +=
            text("inline ", type, ' ', f.name, '(', type, " x, ", type, " y) { return math::", name, "(x, y); }\n");
      }
      kernels.push_back(builder.finish());
    }
  return text(
      "// Made by make_math from tenon/compile/math.h.\n#pragma once\n#pragma GCC system_header\n\nnamespace "
      "tenon::kernels {\nnamespace math "
      "{\n\n",
      emit_c_functions(kernels), "}  // namespace math\n\n", overloads,
      "\n}  // namespace tenon::kernels\n#undef HELPER\n");
}

}  // namespace
}  // namespace tenon::compile

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_math OUT.h\n";
    return 2;
  }
  try {
    std::string header = tenon::compile::header();  // an equal file stays, and with it what was built from it
    if (!std::filesystem::exists(argv[1]) || tenon::read_file(argv[1]) != header)
      tenon::write_file_atomically(argv[1], header);
  } catch (const std::exception& e) {
    std::cerr << "make_math: " << e.what() << '\n';
    return 1;
  }
}
