#include "tenon/api/call.h"

#include "tenon/autograd/record.h"
#include "tenon/interp/eager.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon::v0::detail {

const tenon::Op& operator_named(const char* name) {
  static const bool installed = (tenon::interp::install(), true);
  const tenon::Op* op = tenon::registry().find(name);
  tenon::expect(installed && op != nullptr, "the registry has lost the operator ", name);
  return *op;
}

Call::Call(const tenon::Op& op) : op_(op) { args_.reserve(op.schema.args.size()); }

void Call::give(const Tensor& tensor) { tensor ? args_.emplace_back(Access::unwrap(tensor)) : args_.emplace_back(); }

void Call::give(TensorList tensors) {
  std::vector<tenon::Tensor> list;
  list.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    list.push_back(tensors.data()[i] ? Access::unwrap(tensors.data()[i]) : tenon::Tensor());
  args_.emplace_back(std::move(list));
}

void Call::give(Scalar number) {
  if (number.size().is_symbolic()) return give(number.size());
  switch (number.kind()) {
    case Scalar::Kind::truth: return give(tenon::CallArg(number.integer() != 0));
    case Scalar::Kind::integer: return give(tenon::CallArg(number.integer()));
    case Scalar::Kind::real: return give(tenon::CallArg(number.real()));
  }
  tenon::unreachable();
}

void Call::give(OptionalScalar number) {
  if (!number.given()) return absent();
  give(number.number());
}
void Call::give(Size number) { give(tenon::CallArg(Access::unwrap(number))); }
void Call::give(std::int64_t number) { give(tenon::CallArg(number)); }
void Call::give(double number) { give(tenon::CallArg(number)); }
void Call::give(Flag flag) { give(tenon::CallArg(static_cast<bool>(flag))); }
void Call::give(std::string_view text) { give(tenon::CallArg(std::string(text))); }

void Call::give(IntList numbers) {
  if (!numbers.given() && op_.schema.args[args_.size()].type.optional) return absent();
  tenon::Sizes list;
  for (std::size_t i = 0; i < numbers.size(); ++i) list.push_back(Access::unwrap(numbers[i]));
  give(tenon::CallArg(std::move(list)));
}

void Call::give(FloatList numbers) {
  if (!numbers.given() && op_.schema.args[args_.size()].type.optional) return absent();
  give(tenon::CallArg(std::vector<double>(numbers.data(), numbers.data() + numbers.size())));
}

void Call::give(DType dtype) {
  if (dtype > DType::f8_e8m0fnu) fail_call(op_.name(), ": there is no dtype number ", static_cast<int>(dtype));
  give(tenon::CallArg(static_cast<tenon::DType>(dtype)));
}

void Call::give(tenon::CallArg arg) {
  const tenon::SchemaArg& slot = op_.schema.args[args_.size()];
  guarded(ErrorKind::call, [&] {
    if (auto wanted = tenon::coerce(arg, slot))
      tenon::fail(op_.name(), ": argument ", slot.name, ": expected ", *wanted, ", got ", tenon::describe(arg));
  });
  args_.push_back(std::move(arg));
}

void Call::absent() { args_.emplace_back(); }
void Call::leave_out() { args_.push_back(op_.schema.args[args_.size()].default_value); }

void Call::run() {
  guarded(ErrorKind::call, [&] { results_ = tenon::autograd::call(op_, std::move(args_)); });
}

// What is written becomes the tensor's own dtype, unless that cannot hold its kind of number: i64 /= 2.
void Call::require_result_fits(tenon::DType own) const {
  if (tenon::is_floating(own) || tenon::is_complex(own)) return;
  auto metas = tenon::infer(*op_.functional, args_);
  auto* meta = metas && !metas->values.empty() ? metas->values[0].get<tenon::TensorMeta>() : nullptr;
  if (!meta) return;
  bool fits = !tenon::is_floating(meta->dtype) && !tenon::is_complex(meta->dtype) &&
              (own != tenon::DType::boolean || meta->dtype == tenon::DType::boolean);
  tenon::require(fits, op_.name(), ": the result is ", meta->dtype, ", which a tensor of ", own,
                 " cannot hold; convert the tensor with to() first");
}

const tenon::CallArg& Call::only() {
  run();
  tenon::expect(results_.size() == 1, op_.name(), " gave ", results_.size(), " results");
  return results_[0];
}

Tensor Call::tensor() {
  const tenon::CallArg& result = only();
  return result.is_none() ? Tensor() : Access::wrap(result.as<tenon::Tensor>());
}

Tensor Call::written(const Tensor& self) {
  if (self && op_.functional) guarded(ErrorKind::call, [&] { require_result_fits(Access::unwrap(self).dtype()); });
  run();
  return self;
}

std::vector<Tensor> Call::list() {
  std::vector<Tensor> out;
  for (const tenon::Tensor& each : only().as<std::vector<tenon::Tensor>>()) out.push_back(Access::wrap(each));
  return out;
}

std::vector<Tensor> Call::several(std::size_t count) {
  run();
  tenon::expect(results_.size() == count, op_.name(), " gave ", results_.size(), " results of ", count);
  std::vector<Tensor> out;
  for (const tenon::CallArg& result : results_)
    out.push_back(result.is_none() ? Tensor() : Access::wrap(result.as<tenon::Tensor>()));
  return out;
}

bool Call::truth() { return only().as<bool>(); }
Size Call::integer() { return Access::size(only().as<tenon::SymInt>()); }

double Call::real() {
  const tenon::CallArg& result = only();
  if (auto* integer = result.get<tenon::SymInt>()) return static_cast<double>(integer->as_int());
  return result.as<double>();
}

Scalar Call::scalar() {
  const tenon::CallArg& result = only();
  if (auto* truth = result.get<bool>()) return *truth;
  if (auto* integer = result.get<tenon::SymInt>()) return integer->as_int();
  return result.as<double>();
}

}  // namespace tenon::v0::detail
