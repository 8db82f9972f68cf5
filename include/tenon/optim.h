// What trains models: optimizers with PyTorch's update rules, schedules of their learning rate, clipping of gradients.
// Over the public interface alone. An optimizer is used by one thread at a time.
#pragma once
#include <tenon/optim/clip.h>       // IWYU pragma: export
#include <tenon/optim/optimizer.h>  // IWYU pragma: export
#include <tenon/optim/schedule.h>   // IWYU pragma: export
