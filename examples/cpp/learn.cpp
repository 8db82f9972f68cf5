// A model written in C++, trained until it tells two spirals apart, and saved.
//   learn WEIGHTS.safetensors
#include <tenon/nn.h>
#include <tenon/optim.h>
#include <tenon/tenon.h>

#include <iostream>

namespace nn = tenon::nn;
using tenon::Tensor;

struct Net : nn::Module {
  nn::Linear first = add("first", nn::Linear(2, 32)), second = add("second", nn::Linear(32, 32)),
             out = add("out", nn::Linear(32, 2));
  Tensor operator()(const Tensor& x) const { return out(tanh(second(tanh(first(x))))); }
};

int main(int argc, char** argv) try {
  tenon::manual_seed(1);
  Tensor angle = tenon::linspace(0.5, 9, 100), side = tenon::cat({tenon::zeros({100}), tenon::ones({100})});
  Tensor x = tenon::cat({tenon::stack({angle * cos(angle), angle * sin(angle)}, 1),
                         tenon::stack({-angle * cos(angle), -angle * sin(angle)}, 1)}) /
             9;
  Tensor target = side.to(tenon::i64);

  Net net;
  tenon::optim::AdamW optimizer(net.parameters(), {.lr = 0.02});
  tenon::optim::CosineAnnealingLR schedule(optimizer, 600);
  for (int step = 0; step < 600; ++step) {
    optimizer.zero_grad();
    Tensor loss = nn::CrossEntropyLoss()(net(x), target);
    loss.backward();
    tenon::optim::clip_grad_norm_(net.parameters(), 1.0);
    optimizer.step();
    schedule.step();
    if (step % 100 == 99) std::cout << "step " << step + 1 << "  loss " << loss.item<float>() << "\n";
  }
  tenon::NoGradGuard off;
  double right = (net(x).argmax(1) == target).to(tenon::f64).mean().item<double>();
  std::cout << 100 * right << " % right\n";
  if (argc > 1) tenon::save_tensors(net.state_dict(), argv[1]);
  return right > 0.97 ? 0 : 1;
} catch (const tenon::Error& e) {
  std::cerr << "learn: " << e.what() << "\n";
  return 1;
}
