// Arguments and results that are trees, keywords, and memory of one's own: trees j_nested_inputs.pt2
#include <tenon/tenon.h>

#include <iostream>

struct Rest {
  tenon::Tensor scaled;
  std::tuple<tenon::Tensor, std::optional<tenon::Tensor>> pair;
};

int main(int count, char** arguments) {
  if (count != 2) return std::cerr << "usage: trees j_nested_inputs.pt2\n", 2;
  try {
    tenon::Module model = tenon::load(arguments[1]);
    float mine[] = {1, 2, 3};
    tenon::Tensor three = tenon::from_blob(mine, {3}, tenon::f32), two = tenon::tensor({1.0f, 2.0f});
    std::map<std::string, tenon::Value> table{{"x", tenon::tensor({7.0f})}, {"y", std::vector{two}}};
    tenon::Value out =
        model(std::tuple(two, std::vector{two, three}), table, {{"offset", two}, {"scale", tenon::scalar(2.0f)}});
    Rest rest = out["rest"].as<Rest>();
    std::cout << out["sum"].as<tenon::Tensor>() << "\n" << rest.scaled << "\n" << out["number"].as<int>() << "\n";
  } catch (const tenon::Error& error) { return std::cerr << error.what() << "\n", 1; }
}
