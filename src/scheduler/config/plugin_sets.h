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
// The order in which plugins are asked is ours whatever the lists say; it changes which reason is
// named first, never whether a node fits.
Result<PluginChoices> ReadPluginSets(api::Value plugins, const std::string& path);

// What is enabled at which point, with weights.
api::Draft PluginSetsToDraft(const PluginChoices& choices);

bool IsForeignPlugin(std::string_view name);  // see plugins/registry.h

}  // namespace drakkar::scheduler
