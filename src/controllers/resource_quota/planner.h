#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "quota/usage.h"

namespace drakkar::controllers {

// The resources whose objects count towards a quota.
std::vector<quota::ResourceName> CountedBy(const api::Object& quota);

// The status that a quota should have; nullopt if it has it. `visit` calls back for every object of
// a resource in the quota's namespace. Pure.
using VisitObjects = std::function<void(const quota::ResourceName& resource,
                                        const std::function<void(const api::Object&)>& each)>;
std::optional<api::Draft> PlanQuotaStatus(const api::Object& quota, const VisitObjects& visit,
                                          const quota::Surroundings& around);

}  // namespace drakkar::controllers
