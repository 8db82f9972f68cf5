// Runs the digits network on one batch: run examples/digits/digits_cnn_eval.pt2
#include <tenon/tenon.h>

#include <iostream>

int main(int count, char** arguments) {
  if (count != 2) return std::cerr << "usage: run digits_cnn_eval.pt2\n", 2;
  try {
    tenon::Module model = tenon::load(arguments[1]);
    tenon::Tensor scores = model(tenon::zeros({2, 1, 8, 8}));
    std::cout << scores << "\n";
  } catch (const tenon::Error& error) { return std::cerr << error.what() << "\n", 1; }
}
