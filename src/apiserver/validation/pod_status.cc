#include "apiserver/validation/pod_status.h"

#include <limits>
#include <set>
#include <string_view>
#include <tuple>

#include "apiserver/validation/cause.h"
#include "apiserver/validation/value_rules.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::FieldPath;
using api::Value;

constexpr std::string_view kNegative = "must be a non-negative integer";

void CheckPodConditions(FieldErrors& errors, const FieldPath& path, Value conditions) {
  std::size_t index = 0;
  for (const Value condition : conditions.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    const std::int64_t generation = condition["observedGeneration"].integer();
    if (generation < 0) {
      errors.push_back(Invalid(at.Child("observedGeneration"), generation, kNegative));
    }
    const std::string_view type = condition["type"].str();
    // The capitalization is that of Kubernetes.
    AddProblems(errors, at.Child("Type"), type, api::CheckLabelKey(type));
  }
}

// One address of each family.
void CheckAddresses(FieldErrors& errors, const FieldPath& path, Value now, Value before) {
  std::set<std::string_view> known;
  for (const Value each : before.elements()) known.insert(each["ip"].str());
  const std::size_t valid = errors.size();
  std::size_t index = 0;
  std::size_t count_v6 = 0;
  for (const Value each : now.elements()) {
    const std::string_view address = each["ip"].str();
    if (address.find(':') != std::string_view::npos) ++count_v6;
    const FieldPath at = path.Index(index++);
    if (!known.contains(address)) CheckIpAddress(errors, at, address);
  }
  if (errors.size() == valid && now.size() > 1 && (now.size() > 2 || count_v6 != 1)) {
    errors.push_back(Invalid(path, now, "may specify no more than one IP for each IP family"));
  }
}

// What the container's runtime says about its user.
void CheckUsers(FieldErrors& errors, const FieldPath& path, Value statuses, bool is_windows) {
  constexpr std::int64_t kMaxUid = std::numeric_limits<std::uint32_t>::max();
  std::size_t index = 0;
  for (const Value status : statuses.elements()) {
    const FieldPath at = path.Index(index++).Child("user").Child("linux");
    const Value user = status["user"]["linux"];
    if (!user.has_value()) continue;
    if (is_windows) {
      errors.push_back(Forbidden(at, "cannot be set for a windows pod"));
      continue;
    }
    const std::int64_t uid = user["uid"].integer();
    if (uid < 0 || uid > kMaxUid) {
      errors.push_back(
          Invalid(at.Child("uid"), uid, StrCat("must be between 0 and ", kMaxUid, ", inclusive")));
    }
    CheckUserOrGroupId(errors, at.Child("gid"), user["gid"]);
    std::size_t place = 0;
    for (const Value group : user["supplementalGroups"].elements()) {
      CheckUserOrGroupId(errors, at.Child("supplementalGroups").Index(place++), group);
    }
  }
}

Value FindContainer(Value spec, std::string_view name) {
  for (const api::FieldName list : api::FieldNames{"containers", "initContainers"}) {
    for (const Value each : spec[list].elements()) {
      if (each["name"].str() == name) return each;
    }
  }
  return {};
}

void CheckExtendedClaim(FieldErrors& errors, const FieldPath& path, Value claim, Value spec) {
  if (!claim.has_value()) return;
  const FieldPath list = path.Child("requestMappings");
  if (claim["requestMappings"].empty()) {
    errors.push_back(Required(list, "at least one request mapping is required"));
  }
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> seen;
  std::size_t index = 0;
  for (const Value mapping : claim["requestMappings"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = list.Index(index++);
    const std::string_view container = mapping["containerName"].str();
    const std::string_view resource = mapping["resourceName"].str();
    const std::string_view request = mapping["requestName"].str();
    const Value found = FindContainer(spec, container);
    if (!found.exists()) {
      errors.push_back(Invalid(at.Child("containerName"), container,
                               "must match the name of an entry in spec.initContainers.name or "
                               "spec.containers.name"));
    } else if (!found["resources"]["requests"].Entry(resource).exists()) {
      errors.push_back(Invalid(at.Child("resourceName"), resource,
                               "must match the extended resource name of an entry in "
                               "spec.initContainers.resources.requests or "
                               "spec.containers.resources.requests"));
    }
    CheckDnsLabel(errors, path.Child("requestName"), request);
    if (!seen.insert({container, resource, request}).second) {
      errors.push_back(Duplicate(at.Child("containerName"), container));
      errors.push_back(Duplicate(at.Child("resourceName"), resource));
      errors.push_back(Duplicate(at.Child("requestName"), request));
    }
  }
  const FieldPath name = path.Child("resourceClaimName");
  if (claim["resourceClaimName"].str().empty()) {
    errors.push_back(Required(name));
  } else {
    CheckDnsSubdomain(errors, name, claim["resourceClaimName"].str());
  }
}

}  // namespace

FieldErrors ValidatePodStatus(Value pod, Value before) {
  FieldErrors errors;
  const FieldPath path("status");
  const Value status = pod["status"];
  const Value old = before["status"];
  CheckPodConditions(errors, path.Child("conditions"), status["conditions"]);
  const std::string_view nominated = status["nominatedNodeName"].str();
  if (!nominated.empty() && nominated != old["nominatedNodeName"].str()) {
    const FieldPath at = path.Child("nominatedNodeName");
    CheckDnsSubdomain(errors, at, nominated);
    if (!before["spec"]["nodeName"].str().empty()) {
      errors.push_back(Forbidden(at, "may not be set on pods that are already bound to a node"));
    }
  }
  if (const std::int64_t generation = status["observedGeneration"].integer(); generation < 0) {
    errors.push_back(Invalid(path.Child("observedGeneration"), generation, kNegative));
  }
  CheckExtendedClaim(errors, path.Child("extendedResourceClaimStatus"),
                     status["extendedResourceClaimStatus"], pod["spec"]);
  CheckAddresses(errors, path.Child("podIPs"), status["podIPs"], old["podIPs"]);
  CheckAddresses(errors, path.Child("hostIPs"), status["hostIPs"], old["hostIPs"]);
  const bool is_windows = pod["spec"]["os"]["name"].str() == "windows";
  for (const api::FieldName list : api::FieldNames{"containerStatuses", "initContainerStatuses",
                                                   "ephemeralContainerStatuses"}) {
    CheckUsers(errors, path.Child(list.view()), status[list], is_windows);
  }
  std::size_t index = 0;
  for (const Value each : status["ephemeralContainerStatuses"].elements()) {
    const FieldPath at = path.Child("ephemeralContainerStatuses").Index(index++);
    if (each["allocatedResourcesStatus"].empty()) continue;
    errors.push_back(Forbidden(at.Child("allocatedResourcesStatus"),
                               "must not be specified in container status"));
  }
  return errors;
}

}  // namespace drakkar::apiserver
