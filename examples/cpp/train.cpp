// Steps of gradient descent on a program that returns a loss, then a file with the trained weights:
// train a_mlp_loss.pt2 trained.pt2
#include <tenon/tenon.h>

#include <iostream>

int main(int count, char** arguments) {
  if (count != 3) return std::cerr << "usage: train a_mlp_loss.pt2 trained.pt2\n", 2;
  try {
    tenon::Module model = tenon::load(arguments[1]);
    tenon::Module joint(tenon::differentiate(model.program(), {.of = 0, .wrt = "parameters"}));
    tenon::Tensor x = tenon::full({6, 5}, 0.5), target = tenon::zeros({6}, tenon::i64);
    for (int step = 0; step < 20; ++step) {
      tenon::RunResult ran = joint.run({x, target});
      if (step % 5 == 0) std::cout << "loss " << ran.result[0].as<tenon::Tensor>().item<float>() << "\n";
      for (auto& [name, gradient] : ran.gradients) {
        tenon::Tensor weight = joint.get(name);
        std::span<float> values = weight.mutable_span<float>();
        std::vector<float> slope = gradient.vector<float>();
        for (std::size_t i = 0; i < values.size(); ++i) values[i] -= 0.1f * slope[i];
        joint.set(name, weight);
        model.set(name, weight);
      }
    }
    tenon::save(model, arguments[2]);
  } catch (const tenon::Error& error) { return std::cerr << error.what() << "\n", 1; }
}
