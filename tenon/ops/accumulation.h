// Results that stages add to.
#pragma once
#include "tenon/rules/lowering.h"

namespace tenon {

/// The result itself, or a wider buffer where its dtype is narrow. finish() copies it back.
struct WideResult {
  WideResult(Lower& l, Ref out);
  void finish();
  Lower& l;
  Ref out, target;
};

/// One stage over `domain` whose body adds to the zeroed result, through a wider buffer where its dtype is narrow.
void accumulate(Lower& l, const Sizes& domain, const std::function<void(Ref target, const Index&)>& body);

}  // namespace tenon
