// Tensors by name in files: NumPy's .npz and safetensors.
#pragma once
#include <map>
#include <string>

#include <tenon/tensor.h>

namespace tenon {
TENON_API_NAMESPACE {

/// The tensors of an .npz, .npy (under the name "") or .safetensors file, told apart by content. They lie in the mapped
/// file where it allows that; writing one does not change the file.
TENON_PUBLIC std::map<std::string, Tensor> load_tensors(const std::string& path);
/// Writes a .safetensors file where the name ends so, an .npz otherwise. NumPy has no bf16: that is an Error for .npz.
TENON_PUBLIC void save_tensors(const std::map<std::string, Tensor>& tensors, const std::string& path);

}
}  // namespace tenon
