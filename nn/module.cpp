#include <tenon/nn/module.h>

#include <algorithm>
#include <functional>
#include <set>

namespace tenon::TENON_INLINE v0::nn {

struct Module::Body {
  enum class Kind { parameter, buffer, passing_buffer, constant };  // a passing one is not saved
  struct Entry {
    std::string name;
    Parameter tensor;
    Kind kind = Kind::parameter;
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
  NamedTensors named(std::initializer_list<Kind> kinds) {
    NamedTensors out;
    std::set<const void*> seen;  // tied ones count once
    visit("", [&](const std::string& prefix, const Body& body) {
      for (const Entry& each : body.entries)
        if (std::ranges::find(kinds, each.kind) != kinds.end() && each.tensor.defined() &&
            seen.insert(&*each.tensor).second)
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
  return body_->entries.emplace_back(Body::Entry{name, Parameter(std::move(tensor)), Body::Kind::parameter}).tensor;
}
Parameter Module::add_buffer(const std::string& name, Tensor tensor, bool persistent) {
  body_->require_free(name);
  Body::Kind kind = persistent ? Body::Kind::buffer : Body::Kind::passing_buffer;
  return body_->entries.emplace_back(Body::Entry{name, Parameter(std::move(tensor)), kind}).tensor;
}
Tensor Module::add_constant(const std::string& name, Tensor tensor) {
  body_->require_free(name);
  return body_->entries.emplace_back(Body::Entry{name, Parameter(std::move(tensor)), Body::Kind::constant}).tensor;
}
void Module::add_module(const std::string& name, const Module& module) {
  body_->require_free(name);
  module.body_->visit("", [&](const std::string&, const Body& body) {
    if (&body == body_.get()) throw Error(ErrorKind::call, "a module cannot be a part of itself, as '" + name + "'");
  });
  body_->parts.push_back({name, module.body_});
}

NamedTensors Module::named_parameters() const { return body_->named({Body::Kind::parameter}); }
NamedTensors Module::named_buffers() const { return body_->named({Body::Kind::buffer, Body::Kind::passing_buffer}); }
NamedTensors Module::named_constants() const { return body_->named({Body::Kind::constant}); }
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
      if (each.tensor.defined() && each.kind <= Body::Kind::buffer)
        out.emplace(prefix + each.name, each.tensor->detach());
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
    auto same_sizes = [](const Tensor& a, const Tensor& b) { return std::ranges::equal(a.sizes(), b.sizes()); };
    const Tensor& given = found->second;
    if (!given || given.dtype() != tensor.dtype() || !same_sizes(given, tensor))
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
  if (dtype < f16 || dtype > f64)
    throw Error(ErrorKind::call, "to(): the parameters of a module are floating point; expected f16, bf16, f32 or f64");
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
void Module::apply(const Function<void(const std::string& name, const Module& module)>& f) const {
  std::function<void(const std::string&, const std::shared_ptr<Body>&)> walk = [&](const std::string& name,
                                                                                   const std::shared_ptr<Body>& body) {
    f(name, Module(body));
    for (const Body::Part& part : body->parts) walk(name.empty() ? part.name : name + "." + part.name, part.body);
  };
  if (!f) throw Error(ErrorKind::call, "apply(): a function was expected, got an empty one");
  walk("", body_);
}

ExportedProgram export_module(const Module& model, const char* type, const Forward& forward,
                              const std::vector<Tensor>& inputs, ExportOptions options) {
  std::map<const void*, std::string> names;
  model.body_->visit("", [&](const std::string& prefix, const Module::Body& body) {
    names.emplace(&body, prefix.empty() ? prefix : prefix.substr(0, prefix.size() - 1));
    for (const Module::Body::Entry& each : body.entries)
      if (each.kind == Module::Body::Kind::passing_buffer) options.non_persistent.push_back(prefix + each.name);
  });
  options.parameters = model.named_parameters();
  options.buffers = model.named_buffers();
  options.constants = model.named_constants();
  options.modules = model.named_modules();
  options.type = type;
  options.module_name = [&](const void* module) {
    auto found = names.find(module);
    return found == names.end() ? std::string() : found->second;
  };
  // What forward puts in the place of a buffer is written into the buffer by the program; the model keeps its own.
  Forward writing = [&](const std::vector<Tensor>& given) {
    std::vector<std::pair<std::string, Parameter>> held;
    model.body_->visit("", [&](const std::string& prefix, const Module::Body& body) {
      for (const Module::Body::Entry& each : body.entries)
        if (each.tensor.defined()) held.emplace_back(prefix + each.name, each.tensor);
    });
    std::vector<Tensor> before;
    for (const auto& [name, tensor] : held) before.push_back(*tensor);
    auto put_back = [&](bool record) {
      for (std::size_t i = 0; i < held.size(); ++i) {
        Tensor now = *held[i].second;
        if (now.is_same(before[i])) continue;
        held[i].second.set(before[i]);
        auto named = [&](const NamedTensors& list) {
          return std::ranges::any_of(list, [&](const auto& each) { return each.first == held[i].first; });
        };
        if (record && !named(options.buffers))
          throw Error(ErrorKind::call, "export_program: forward puts another tensor in the place of '" + held[i].first +
                                           "', which is no buffer; make it one with add_buffer");
        if (record) before[i].copy_(now);
      }
    };
    std::vector<Tensor> results;
    try {
      results = forward(given);
    } catch (...) {
      put_back(false);
      throw;
    }
    put_back(true);
    return results;
  };
  return tenon::export_program(writing, inputs, options);
}

}  // namespace tenon::TENON_INLINEv0::nn
