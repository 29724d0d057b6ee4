#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "api/tree/value.h"

namespace drakkar::apiserver {

inline constexpr std::string_view kRegistrationGroup = "apiregistration.k8s.io";
inline constexpr std::string_view kApiServices = "apiservices";
// Marks the APIServices that the server itself keeps.
inline constexpr std::string_view kAutomanagedLabel = "kube-aggregator.kubernetes.io/automanaged";
inline constexpr std::string_view kManagedOnStart = "onstart";  // built-in groups
inline constexpr std::string_view kManagedAlways = "true";      // those of definitions

struct ServedVersion {
  std::string group;
  std::string version;
  auto operator<=>(const ServedVersion&) const = default;
};

// "v1.apps", and "v1." for the core group.
std::string ApiServiceName(std::string_view group, std::string_view version);

// The place of a group among the groups and of a version in its group: higher ones come first in
// discovery.
struct ServicePriority {
  int group = 0;
  int version = 0;
};
// The priority of a built-in group version; for others, that of custom resources.
ServicePriority PriorityOf(std::string_view group, std::string_view version);

// An APIService that declares that this server serves the group version itself.
api::TreePtr LocalApiService(const ServedVersion& served, std::string_view managed);
// Whether the server made it, and may remove it.
bool IsAutomanaged(api::Value api_service);

}  // namespace drakkar::apiserver
