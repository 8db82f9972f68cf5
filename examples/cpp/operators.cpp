// Operators as functions and methods: a few steps of gradient descent, written out.
//   operators
#include <tenon/tenon.h>

#include <iostream>

int main() {
  using namespace tenon;
  manual_seed(0);
  Tensor x = randn({64, 3}), truth = tensor({1.0f, -2.0f, 0.5f});
  Tensor y = matmul(x, truth) + 0.25;
  Tensor weight = zeros({3}), bias = zeros({});
  for (int step = 0; step < 200; ++step) {
    Tensor error = matmul(x, weight) + bias - y;
    weight -= 0.1 * x.t().matmul(error) / error.size(0);
    bias -= 0.1 * error.mean();
  }
  Tensor loss = pow(matmul(x, weight) + bias - y, 2).mean();
  std::cout << weight << " " << bias << "\nloss " << loss.item<double>() << "\n";
  return loss.item<double>() < 1e-3 ? 0 : 1;
}
