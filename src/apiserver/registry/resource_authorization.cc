#include "apiserver/registry/resource_authorization.h"

#include <map>
#include <optional>
#include <vector>

#include "apiserver/request/node_identity.h"
#include "apiserver/validation/name_rules.h"
#include "apiserver/validation/resource_claim.h"
#include "apiserver/validation/semantic_equal.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldError;
using api::FieldPath;
using api::Value;

constexpr std::string_view kGroup = "resource.k8s.io";
constexpr std::string_view kAdminLabel = "resource.kubernetes.io/admin-access";

void CheckAdminLabel(Findings& out, const FieldPath& path, std::string_view namespace_,
                     const StrategyContext& context) {
  const api::ObjectPtr home = context.lookup("", "namespaces", std::string(namespace_));
  if (home == nullptr) {
    out.Add(FieldError::Internal(
        path, StrCat("could not retrieve namespace to verify admin access: namespaces ",
                     Quote(namespace_), " not found")));
  } else if ((*home)["metadata"]["labels"].Entry(kAdminLabel).str() != "true") {
    out.Add(
        FieldError::Forbidden(path, StrCat("admin access to devices requires the `", kAdminLabel,
                                           ": true` label on the containing namespace")));
  }
}

// The index of the first allocation result with admin access; nothing if there is none.
std::optional<std::size_t> FirstAdminResult(Value claim) {
  std::size_t index = 0;
  for (const Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
    if (result["adminAccess"].boolean()) return index;
    ++index;
  }
  return std::nullopt;
}

// Asks the authorizer. A denial is worded as if a whole request had been denied.
Decision Ask(const StrategyContext& context, std::string_view verb, std::string_view subresource,
             std::string_view namespace_, std::string_view name) {
  const Decision decision =
      context.authorize(verb, kGroup, "resourceclaims", subresource, namespace_, name);
  if (decision.allowed) return decision;
  std::string text = "resourceclaims.resource.k8s.io ";
  if (!name.empty()) text += StrCat(Quote(name), " ");
  text += StrCat("is forbidden: User ", Quote(context.user.name), " cannot ", verb, " resource ",
                 Quote(StrCat("resourceclaims/", subresource)), " in API group ", Quote(kGroup));
  text += namespace_.empty() ? std::string(" at the cluster scope")
                             : StrCat(" in the namespace ", Quote(namespace_));
  if (!decision.reason.empty()) text += StrCat(": ", decision.reason);
  return Decision::Deny(std::move(text));
}

bool IsServiceAccount(std::string_view user) {
  constexpr std::string_view kPrefix = "system:serviceaccount:";
  if (!user.starts_with(kPrefix)) return false;
  const std::vector<std::string_view> parts = Split(user.substr(kPrefix.size()), ':');
  return parts.size() == 2 && DnsLabelProblems(parts[0]).empty() &&
         DnsSubdomainProblems(parts[1]).empty();
}

}  // namespace

void CheckAdminAccess(Findings& out, Value requests, std::string_view namespace_,
                      const StrategyContext& context) {
  std::size_t index = 0;
  for (const Value request : requests.elements()) {
    if (request["exactly"]["adminAccess"].boolean()) {
      // The same path for all versions, without "exactly" and as if for a claim, as in Kubernetes.
      const FieldPath path = FieldPath("spec.devices.requests").Index(index).Child("adminAccess");
      CheckAdminLabel(out, path, namespace_, context);
      return;
    }
    ++index;
  }
}

void CheckAdminAccessStatus(Findings& out, Value claim, Value before,
                            const StrategyContext& context) {
  // An allocation is immutable, so permissions that were granted for it stay.
  if (FirstAdminResult(before)) return;
  const std::optional<std::size_t> index = FirstAdminResult(claim);
  if (!index) return;
  CheckAdminLabel(out,
                  FieldPath("status.allocation.devices.results").Index(*index).Child("adminAccess"),
                  claim["metadata"]["namespace"].str(), context);
}

void CheckBindingPermission(Findings& out, const FieldPath& path, Value status, Value before,
                            const StrategyContext& context) {
  const api::StructSchema* schema = api::FindStruct("io.k8s.api.resource.v1.ResourceClaimStatus");
  auto same = [&](api::FieldName field) {
    return status[field].has_value() == before[field].has_value() &&
           SemanticEqual(status[field], before[field], schema->Find(field)->type);
  };
  const bool same_consumers = SemanticEqual(status["reservedFor"], before["reservedFor"],
                                            schema->Find("reservedFor")->type);
  if (same("allocation") && same_consumers) return;
  const std::string_view verb = VerbName(context.verb);
  // Which nodes and claims an allocation affects is not known in advance, so it is all or nothing.
  if (const Decision decision = Ask(context, verb, "binding", "", ""); !decision.allowed) {
    out.Add(FieldError::Forbidden(
        path, StrCat("changing status.allocation or status.reservedFor requires "
                     "resource=\"resourceclaims/binding\", verb=\"",
                     verb, "\" permission: ", decision.reason)));
  }
}

std::set<std::string> ModifiedDrivers(Value status, Value before) {
  std::map<DeviceKey, Value> old;
  for (const Value device : before["devices"].elements()) old[DeviceKeyOf(device)] = device;
  std::set<std::string> drivers;
  for (const Value device : status["devices"].elements()) {
    auto found = old.find(DeviceKeyOf(device));
    if (found == old.end() || !SemanticEqual(device, found->second, "AllocatedDeviceStatus")) {
      drivers.emplace(device["driver"].str());
    }
    if (found != old.end()) old.erase(found);
  }
  for (const auto& [key, device] : old) drivers.emplace(device["driver"].str());
  return drivers;
}

std::string_view NodeOfAllocation(Value allocation) {
  const Value terms = allocation["nodeSelector"]["nodeSelectorTerms"];
  const Value fields = terms.at(0)["matchFields"];
  if (terms.size() != 1 || !terms.at(0)["matchExpressions"].empty() || fields.size() != 1) {
    return {};
  }
  const Value field = fields.at(0);
  if (field["key"].str() != "metadata.name" || field["operator"].str() != "In" ||
      field["values"].size() != 1) {
    return {};
  }
  return field["values"].at(0).str();
}

bool IsServiceAccountOnNode(const UserInfo& user, std::string_view node) {
  if (node.empty() || !IsServiceAccount(user.name)) return false;
  const std::string_view name = OnlyExtra(user, kNodeNameExtra);
  return DnsSubdomainProblems(name).empty() && name == node;
}

void CheckDriverPermission(Findings& out, const FieldPath& path, Value status, Value before,
                           std::string_view namespace_, const StrategyContext& context) {
  const std::set<std::string> drivers = ModifiedDrivers(status, before);
  if (drivers.empty()) return;
  const std::string_view verb = VerbName(context.verb);
  std::vector<std::string> verbs;
  const std::string_view node = NodeOfAllocation(status["allocation"]);
  const bool is_driver_there =
      IsNodeDriver(context.user) && !node.empty() && NodeOfUser(context.user) == node;
  if (is_driver_there || IsServiceAccountOnNode(context.user, node)) {
    verbs.push_back(StrCat("associated-node:", verb));
  }
  verbs.push_back(StrCat("arbitrary-node:", verb));
  for (const std::string& driver : drivers) {
    std::optional<std::string> first_reason;
    bool allowed = false;
    for (const std::string& each : verbs) {
      Decision decision = Ask(context, each, "driver", namespace_, driver);
      allowed = decision.allowed;
      if (allowed) break;
      if (!first_reason) first_reason = std::move(decision.reason);
    }
    if (allowed) continue;
    out.Add(FieldError::Forbidden(
        path, StrCat("changing status.devices requires resource=\"resourceclaims/driver\", ",
                     "verb=\"[", Join(verbs, " "), "]\" permission: ", *first_reason)));
  }
}

}  // namespace drakkar::apiserver
