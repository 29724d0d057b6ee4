#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "base/env/clock.h"

namespace drakkar::controllers {

// Why a namespace that is being deleted still exists.
struct NamespaceObstacles {
  std::string unreachable;            // API groups whose kinds are not known; empty: all are
  std::set<std::string> undeletable;  // why something could not be deleted
  std::map<std::string, std::size_t> content;     // "pods." and how many of them are left
  std::map<std::string, std::size_t> finalizers;  // and how many objects have each
};

// The status of the namespace with the corresponding conditions; nullopt if it has them. Pure.
std::optional<api::Draft> PlanNamespaceStatus(const api::Object& name_space,
                                              const NamespaceObstacles& obstacles, WallTime now);

}  // namespace drakkar::controllers
