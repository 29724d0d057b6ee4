#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/tree/draft.h"
#include "api/tree/value.h"
#include "base/result/result.h"
#include "scheduler/config/profile.h"

namespace drakkar::scheduler {

using PluginChoices = std::map<std::string, PluginChoice, std::less<>>;

// The `plugins` of a profile: what is enabled and disabled at each extension point and, as
// multiPoint, at all of them, "*" included. A choice made for one point is stronger than one for
// all.
//
// The order of the lists is that of Kubernetes: what a point names comes first, then what
// multiPoint has, in its order. It decides under which reason a node is counted that several
// plugins refuse, never whether a node fits. At preEnqueue scheduling gates are always asked first.
Result<PluginChoices> ReadPluginSets(api::Value plugins, const std::string& path);

// What is enabled at which point, with weights.
api::Draft PluginSetsToDraft(const PluginChoices& choices);

bool IsForeignPlugin(std::string_view name);  // see plugins/registry.h

}  // namespace drakkar::scheduler
