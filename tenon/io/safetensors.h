// Arrays by name as safetensors files keep them: a length, a JSON header, then the elements.
#pragma once
#include "tenon/io/npy.h"

namespace tenon {

/// The arrays in the order of the header; they lie in the mapped file where their alignment allows it. Dtypes beside
/// NumPy's: bf16, f8_e4m3fn, f8_e5m2. Everything the header says is checked against the file.
std::vector<NamedArray> load_safetensors(const std::string& path);
std::vector<NamedArray> read_safetensors(std::span<const std::byte> file, const std::string& subject,
                                         std::shared_ptr<const void> owner = {});
bool looks_like_safetensors(std::span<const std::byte> bytes);
/// Words that stand in the header beside the arrays, by name.
using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;
SafetensorsMetadata load_safetensors_metadata(const std::string& path);
/// Arrays must be contiguous. The file appears whole or not at all.
void save_safetensors(const std::string& path, std::span<const NamedArray> arrays,
                      const SafetensorsMetadata& metadata = {});

/// An .npy, .npz or .safetensors file, told apart by content.
std::vector<NamedArray> load_any_arrays(const std::string& path);

}  // namespace tenon
