// A custom class and an operator that takes one, for a program that holds a custom object. Built by export_special.py
// against the headers of the PyTorch that runs it.
#include <ATen/ATen.h>
#include <torch/custom_class.h>
#include <torch/library.h>

struct Scale : torch::CustomClassHolder {
  explicit Scale(double f) : factor(f) {}
  double factor;
};

TORCH_LIBRARY(tenon_test, m) {
  m.class_<Scale>("Scale")
      .def(torch::init<double>())
      .def("__obj_flatten__",
           [](const c10::intrusive_ptr<Scale>& s) {
             using Field = std::tuple<std::string, double>;
             return std::tuple<Field>(Field("factor", s->factor));
           })
      .def_pickle([](const c10::intrusive_ptr<Scale>& s) { return s->factor; },
                  [](double factor) { return c10::make_intrusive<Scale>(factor); });
  m.def("scaled(Tensor x, __torch__.torch.classes.tenon_test.Scale s) -> Tensor");
}

TORCH_LIBRARY_IMPL(tenon_test, CompositeExplicitAutograd, m) {
  m.impl("scaled", [](const at::Tensor& x, const c10::intrusive_ptr<Scale>& s) { return x * s->factor; });
}
