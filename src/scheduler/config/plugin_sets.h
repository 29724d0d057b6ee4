#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/tree/draft.h"
#include "api/tree/value.h"
#include "base/result/result.h"
#include "scheduler/framework/profile.h"

namespace drakkar::scheduler {

using PluginChoices = std::map<std::string, PluginChoice, std::less<>>;

// Reads the `plugins` of a profile: which plugins are enabled and disabled at each extension point
// and, under multiPoint, at all of them, including "*". A choice for one point overrides a choice
// for all points.
//
// The order is that of Kubernetes: first the plugins that the point lists, then those that
// multiPoint lists. It decides which reason is reported for a node that several plugins reject,
// never whether the node fits. At preEnqueue, scheduling gates always come first.
Result<PluginChoices> ReadPluginSets(api::Value plugins, const std::string& path);

// The enabled plugins of each point, with weights.
api::Draft PluginSetsToDraft(const PluginChoices& choices);

}  // namespace drakkar::scheduler
