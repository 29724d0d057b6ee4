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

// Reads the `plugins` of a profile: what is enabled and disabled at each extension point and, under
// multiPoint, at all of them, "*" included. A choice for one point overrides one for all.
//
// The order is that of Kubernetes: first what the point lists, then what multiPoint lists. It
// decides which reason is reported for a node that several plugins reject, never whether the node
// fits. At preEnqueue, scheduling gates always come first.
Result<PluginChoices> ReadPluginSets(api::Value plugins, const std::string& path);

// The enabled plugins of each point, with weights.
api::Draft PluginSetsToDraft(const PluginChoices& choices);

}  // namespace drakkar::scheduler
