#include <tenon/nn/module.h>

#include <functional>
#include <set>

namespace tenon::TENON_INLINE v0::nn {

struct Module::Body {
  struct Entry {
    std::string name;
    Parameter tensor;
    bool is_parameter = true;
  };
  struct Part {
    std::string name;
    std::shared_ptr<Body> body;
  };
  std::vector<Entry> entries;
  std::vector<Part> parts;
  bool training = true;

  void require_free(const std::string& name) const {
    if (name.empty() || name.find('.') != name.npos)
      throw Error(ErrorKind::call, "a name within a module is not empty and has no dot, got '" + name + "'");
    bool taken = false;
    for (const Entry& each : entries) taken = taken || each.name == name;
    for (const Part& each : parts) taken = taken || each.name == name;
    if (taken) throw Error(ErrorKind::call, "the module already has something called '" + name + "'");
  }
  template <class Visit>
  void visit(const std::string& prefix, const Visit& f) {
    f(prefix, *this);
    for (const Part& part : parts) part.body->visit(prefix + part.name + ".", f);
  }
  NamedTensors named(bool parameters) {
    NamedTensors out;
    std::set<const void*> seen;  // tied ones count once
    visit("", [&](const std::string& prefix, const Body& body) {
      for (const Entry& each : body.entries)
        if (each.is_parameter == parameters && each.tensor.defined() && seen.insert(&*each.tensor).second)
          out.emplace_back(prefix + each.name, *each.tensor);
    });
    return out;
  }
};

Module::Module() : body_(std::make_shared<Body>()) {}
Module::~Module() = default;

Parameter Module::add_parameter(const std::string& name, Tensor tensor) {
  body_->require_free(name);
  if (tensor) tensor.requires_grad_();
  return body_->entries.emplace_back(Body::Entry{name, Parameter(std::move(tensor)), true}).tensor;
}
Parameter Module::add_buffer(const std::string& name, Tensor tensor) {
  body_->require_free(name);
  return body_->entries.emplace_back(Body::Entry{name, Parameter(std::move(tensor)), false}).tensor;
}
void Module::add_module(const std::string& name, const Module& module) {
  body_->require_free(name);
  module.body_->visit("", [&](const std::string&, const Body& body) {
    if (&body == body_.get()) throw Error(ErrorKind::call, "a module cannot be a part of itself, as '" + name + "'");
  });
  body_->parts.push_back({name, module.body_});
}

NamedTensors Module::named_parameters() const { return body_->named(true); }
NamedTensors Module::named_buffers() const { return body_->named(false); }
std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> out;
  for (auto& [name, tensor] : named_parameters()) out.push_back(tensor);
  return out;
}
std::vector<std::string> Module::named_modules() const {
  std::vector<std::string> out;
  body_->visit("", [&](const std::string& prefix, const Body&) {
    out.push_back(prefix.empty() ? prefix : prefix.substr(0, prefix.size() - 1));
  });
  return out;
}

std::map<std::string, Tensor> Module::state_dict() const {
  std::map<std::string, Tensor> out;
  body_->visit("", [&](const std::string& prefix, const Body& body) {
    for (const Body::Entry& each : body.entries)
      if (each.tensor.defined()) out.emplace(prefix + each.name, each.tensor->detach());
  });
  return out;
}

void Module::load_state_dict(const std::map<std::string, Tensor>& state, bool strict) const {
  std::map<std::string, Tensor> own = state_dict();
  for (const auto& [name, tensor] : own) {  // everything is checked before anything is written
    auto found = state.find(name);
    if (found == state.end()) {
      if (strict) throw Error(ErrorKind::call, "load_state_dict: '" + name + "' is missing");
      continue;
    }
    auto sizes = [](const Tensor& t) { return std::vector<std::int64_t>(t.sizes().begin(), t.sizes().end()); };
    const Tensor& given = found->second;
    if (!given || given.dtype() != tensor.dtype() || sizes(given) != sizes(tensor))
      throw Error(ErrorKind::call, "load_state_dict: '" + name + "': expected " + describe(Value(tensor)) + ", got " +
                                       describe(Value(given)));
  }
  for (const auto& [name, tensor] : state)
    if (strict && !own.contains(name))
      throw Error(ErrorKind::call, "load_state_dict: the module has nothing called '" + name + "'");
  NoGradGuard off;
  for (const auto& [name, tensor] : own)
    if (auto found = state.find(name); found != state.end()) tensor.copy_(found->second);
}

void Module::zero_grad() const {
  for (const Tensor& parameter : parameters()) parameter.set_grad({});
}
void Module::train(bool on) const {
  body_->visit("", [&](const std::string&, Body& body) { body.training = on; });
}
bool Module::is_training() const { return body_->training; }
void Module::requires_grad_(bool requires_grad) const {
  for (const Tensor& parameter : parameters()) parameter.requires_grad_(requires_grad);
}
void Module::to(DType dtype) const {
  NoGradGuard off;
  body_->visit("", [&](const std::string&, Body& body) {
    for (Body::Entry& each : body.entries) {
      if (!each.tensor.defined() || each.tensor->dtype() == dtype) continue;
      if (each.tensor->dtype() < f16 || each.tensor->dtype() > f64) continue;
      bool requires_grad = each.tensor->requires_grad();
      each.tensor.set(each.tensor->to(dtype).requires_grad_(requires_grad));
    }
  });
}
void Module::apply(const std::function<void(const std::string& name, const Module& module)>& f) const {
  std::function<void(const std::string&, const std::shared_ptr<Body>&)> walk = [&](const std::string& name,
                                                                                   const std::shared_ptr<Body>& body) {
    f(name, Module(body));
    for (const Body::Part& part : body->parts) walk(name.empty() ? part.name : name + "." + part.name, part.body);
  };
  walk("", body_);
}

}  // namespace tenon::TENON_INLINEv0::nn
