// Tenon runs, differentiates and writes the programs that torch.export makes. One include for all of it.
#pragma once
#include <tenon/arithmetic.h>  // IWYU pragma: export
#include <tenon/arrays.h>      // IWYU pragma: export
#include <tenon/autograd.h>    // IWYU pragma: export
#include <tenon/compile.h>     // IWYU pragma: export
#include <tenon/custom_ops.h>  // IWYU pragma: export
#include <tenon/dialect.h>     // IWYU pragma: export
#include <tenon/error.h>       // IWYU pragma: export
#include <tenon/export.h>      // IWYU pragma: export
#include <tenon/module.h>      // IWYU pragma: export
#include <tenon/operators.h>   // IWYU pragma: export
#include <tenon/program.h>     // IWYU pragma: export
#include <tenon/tensor.h>      // IWYU pragma: export
#include <tenon/train.h>       // IWYU pragma: export
#include <tenon/unflatten.h>   // IWYU pragma: export
#include <tenon/value.h>       // IWYU pragma: export
#include <tenon/version.h>     // IWYU pragma: export
