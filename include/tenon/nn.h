// Models written in C++: modules, layers, losses. Over the public interface alone.
#pragma once
#include <tenon/nn/activation.h>     // IWYU pragma: export
#include <tenon/nn/attention.h>      // IWYU pragma: export
#include <tenon/nn/containers.h>     // IWYU pragma: export
#include <tenon/nn/convolution.h>    // IWYU pragma: export
#include <tenon/nn/export.h>         // IWYU pragma: export
#include <tenon/nn/init.h>           // IWYU pragma: export
#include <tenon/nn/linear.h>         // IWYU pragma: export
#include <tenon/nn/loss.h>           // IWYU pragma: export
#include <tenon/nn/module.h>         // IWYU pragma: export
#include <tenon/nn/normalization.h>  // IWYU pragma: export
#include <tenon/nn/pooling.h>        // IWYU pragma: export
#include <tenon/nn/recurrent.h>      // IWYU pragma: export
