#include <tenon/arrays.h>
#include <tenon/operators.h>

#include "tenon/api/access.h"
#include "tenon/io/safetensors.h"

namespace tenon::v0 {

using detail::Access;
using detail::guarded;

namespace {

Tensor to_tensor(const tenon::Array& array) {
  tenon::TensorMeta meta;
  auto dtype = tenon::dtype_of(array.dtype);
  tenon::expect(dtype.has_value(), "a dtype of arrays that tensors lack: ", array.dtype);
  meta.dtype = *dtype;
  for (int64_t size : array.sizes) meta.sizes.push_back(size);
  for (int64_t stride : array.strides) meta.strides.push_back(stride);
  return Access::wrap(tenon::Tensor(std::move(meta), std::make_shared<tenon::Storage>(array.bytes, array.owner)));
}

tenon::Array to_array(const Tensor& tensor) {
  Tensor dense = tensor.contiguous();
  auto owner = std::make_shared<Tensor>(dense);
  tenon::Array out{.dtype = std::string(tenon::name(Access::unwrap(dense).dtype())),
                   .sizes = {dense.sizes().begin(), dense.sizes().end()},
                   .strides = std::vector<int64_t>(dense.sizes().size(), 1),
                   .bytes = {static_cast<const std::byte*>(dense.raw_data()),
                             static_cast<size_t>(dense.numel()) * dense.item_size()},
                   .owner = owner};
  for (size_t i = out.sizes.size(); i-- > 1;) out.strides[i - 1] = out.strides[i] * std::max<int64_t>(out.sizes[i], 1);
  return out;
}

}  // namespace

std::map<std::string, Tensor> load_tensors(const std::string& path) {
  return guarded(ErrorKind::file, [&] {
    std::map<std::string, Tensor> out;
    for (const tenon::NamedArray& named : tenon::load_any_arrays(path)) out.emplace(named.name, to_tensor(named.array));
    return out;
  });
}

void save_tensors(const std::map<std::string, Tensor>& tensors, const std::string& path) {
  bool safe = path.ends_with(".safetensors");
  std::vector<tenon::NamedArray> arrays;
  for (const auto& [name, tensor] : tensors) {
    const tenon::Tensor& inner = Access::unwrap(tensor, "a tensor to save");
    bool numpy = inner.dtype() <= tenon::DType::f16 ||
                 (inner.dtype() >= tenon::DType::f32 && inner.dtype() <= tenon::DType::f64) ||
                 inner.dtype() == tenon::DType::c64 || inner.dtype() == tenon::DType::c128;
    if (!safe && !numpy)
      detail::fail_call(name, ": NumPy has no dtype ", inner.dtype(),
                        "; write a .safetensors file, or convert it with to(tenon::f32)");
    arrays.push_back({name, guarded(ErrorKind::call, [&tensor = tensor] { return to_array(tensor); })});
  }
  guarded(ErrorKind::file, [&] { safe ? tenon::save_safetensors(path, arrays) : tenon::save_npz(path, arrays); });
}

}  // namespace tenon::v0
