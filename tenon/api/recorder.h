// What is told, on one thread, while a program is made of what C++ code calls: which module calls, and which tensors
// are written down in code.
#pragma once
#include <tenon/arguments.h>

#include "tenon/tensor/tensor.h"

namespace tenon::v0::detail {

class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void enter(const void* module, const char* type) = 0;
  virtual void takes(TensorList inputs) = 0;  // the module entered last
  virtual void gives(TensorList results) = 0;
  virtual void leave() = 0;
  virtual void made(const tenon::Tensor& tensor) = 0;  // from numbers, by tenon::tensor
};

/// Null where none is.
Recorder* current_recorder();

class RecorderScope {
 public:
  explicit RecorderScope(Recorder* recorder);
  ~RecorderScope();
  RecorderScope(const RecorderScope&) = delete;

 private:
  Recorder* previous_;
};

}  // namespace tenon::v0::detail
