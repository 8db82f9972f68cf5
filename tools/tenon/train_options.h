// The options of tenon train.
#pragma once
#include "tools/tenon/verbs.h"

namespace CLI {
class App;
}

namespace tenon::tool {

/// Adds the verb; what is given goes to the request.
CLI::App& add_train(CLI::App& app, TrainRequest& request);

}  // namespace tenon::tool
