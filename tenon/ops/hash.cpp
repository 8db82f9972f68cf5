// Numbers that tell tensors apart.
#include "tenon/ops/reduction.h"
#include "tenon/rules/registry.h"

namespace tenon {

void register_hash(Registry& ops) {
  ops.add({
      .schema = "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta& x = m.meta("self");
        m.require(m.constant("mode") == 0, "mode: expected 0 (exclusive or), got ", m.constant("mode"));
        m.require(!is_complex(x.dtype), "expected a tensor of real numbers, got ", x);
        Reduced over(m, x.sizes);
        require_elements(m, x.sizes, over);
        return like(x, reduced_sizes(x.sizes, over.dims, over.keepdim), DType::u64);
      },
      .vjp = no_gradient(),
      .host = {"hash_tensor"},
  });
}

}  // namespace tenon
