#pragma once

#include <vector>

#include "cli/command.h"
#include "features/report.h"

namespace drakkar::cli {

// A node described by flags; `kept` owns the data that `input` points to.
struct NodeDescription {
  features::NodeInput input;
  api::TreePtr kept;
};

// --kubelet-config, --feature-gates, --runtime-features, --version, --agent.
std::vector<Flag> NodeDescriptionFlags();
Result<NodeDescription> ReadNodeDescription(const Arguments& arguments, Console& console);

}  // namespace drakkar::cli
