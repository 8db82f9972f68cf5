// Tensors by name in files: NumPy's .npz and safetensors.
#pragma once
#include <tenon/tensor.h>

#include <map>
#include <string>

namespace tenon::TENON_INLINE v0 {
/// The tensors of an .npz, .npy (under the name "") or .safetensors file, told apart by content. They lie in the
/// mapped file where it allows that; writing one does not change the file.
TENON_PUBLIC std::map<std::string, Tensor> load_tensors(const std::string& path);
/// Writes a .safetensors file where the name ends so, an .npz otherwise. NumPy has no bf16: that is an Error for
/// .npz.
TENON_PUBLIC void save_tensors(const std::map<std::string, Tensor>& tensors, const std::string& path);

}  // namespace tenon::TENON_INLINEv0
