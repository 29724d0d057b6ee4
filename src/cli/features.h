#pragma once

#include <vector>

#include "cli/command.h"
#include "features/report.h"

namespace drakkar::cli {

// A node as flags describe it; `kept` owns what `input` points into.
struct NodeDescription {
  features::NodeInput input;
  api::TreePtr kept;
};

// --kubelet-config, --feature-gates, --runtime-features, --version, --agent.
std::vector<Flag> NodeDescriptionFlags();
Result<NodeDescription> ReadNodeDescription(const Arguments& arguments, Console& console);

}  // namespace drakkar::cli
