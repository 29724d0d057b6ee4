#include "apiserver/admission/node_restriction.h"

#include <algorithm>
#include <set>

#include "api/scheme/scheme.h"
#include "apiserver/auth/bootstrap_policy.h"
#include "apiserver/auth/node_identity.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Value;
using Refusal = std::optional<std::string>;

constexpr std::string_view kLeaseNamespace = "kube-node-lease";
constexpr std::string_view kMirrorAnnotation = "kubernetes.io/config.mirror";
// The user's extra field that ties a service account's token to a node.
constexpr std::string_view kNodeNameExtra = "authentication.kubernetes.io/node-name";

// What was asked, with the object as it will be and as it was.
struct Question {
  const Request& request;
  std::string_view node;
  Value object;  // absent on delete
  Value before;  // absent on create
};

bool Changed(const Question& q, std::string_view member) {
  const Value now = q.object["status"][member];
  const Value then = q.before["status"][member];
  // Nothing and an empty list are the same.
  if (!now.has_value() || now.empty()) return then.has_value() && !then.empty();
  return !api::Equal(now, then);
}

Refusal CheckMirrorPod(const Question& q) {
  const std::string node = Quote(q.node);
  if (!q.object["metadata"]["annotations"][kMirrorAnnotation].exists()) {
    return StrCat("pod does not have ", Quote(kMirrorAnnotation), " annotation, node ", node,
                  " can only create mirror pods");
  }
  if (q.object["spec"]["nodeName"].str() != q.node) {
    return StrCat("node ", node, " can only create pods with spec.nodeName set to itself");
  }
  for (Value owner : q.object["metadata"]["ownerReferences"].elements()) {
    if (owner["kind"].str() != "Node" || owner["name"].str() != q.node) {
      return StrCat("node ", node, " can only create pods with an owner reference set to itself");
    }
  }
  // A mirror pod says what runs already; it must not pull anything into the node's reach.
  const Value spec = q.object["spec"];
  if (!spec["serviceAccountName"].str().empty()) {
    return StrCat("node ", node, " can not create pods that reference a service account");
  }
  if (!spec["resourceClaims"].empty()) {
    return StrCat("node ", node, " can not create pods that reference resource claims");
  }
  for (Value volume : spec["volumes"].elements()) {
    for (std::string_view each : {"secret", "configMap", "persistentVolumeClaim", "projected"}) {
      if (volume[each].has_value()) {
        return StrCat("node ", node, " can not create pods that reference ", each, " volumes");
      }
    }
  }
  return std::nullopt;
}

Refusal CheckPodStatus(const Question& q) {
  const std::string node = Quote(q.node);
  if (q.before["spec"]["nodeName"].str() != q.node) {
    return StrCat("node ", node,
                  " can only update pod status for pods with spec.nodeName set to itself");
  }
  const Value labels = q.object["metadata"]["labels"];
  const Value labels_before = q.before["metadata"]["labels"];
  if (!(labels.empty() && labels_before.empty()) && !api::Equal(labels, labels_before)) {
    return StrCat("node ", node, " cannot update labels through pod status");
  }
  if (Changed(q, "resourceClaimStatuses")) {
    return StrCat("node ", node, " cannot update resource claim statues");
  }
  if (Changed(q, "extendedResourceClaimStatus")) {
    return StrCat("node ", node, " cannot update extended resource claim status");
  }
  if (Changed(q, "nodeAllocatableResourceClaimStatuses")) {
    return StrCat("node ", node, " cannot update node allocatable resource claim statuses");
  }
  return std::nullopt;
}

Refusal CheckPod(const Question& q) {
  const std::string node = Quote(q.node);
  const std::string& subresource = q.request.subresource;
  if (subresource == "status") return CheckPodStatus(q);
  if (subresource == "eviction") {
    if (q.before.exists() && q.before["spec"]["nodeName"].str() != q.node) {
      return StrCat("node ", node, " can only evict pods with spec.nodeName set to itself");
    }
    return std::nullopt;
  }
  if (!subresource.empty()) {
    return StrCat("unexpected pod subresource ", Quote(subresource),
                  ", only 'status' and 'eviction' are allowed");
  }
  switch (q.request.verb) {
    case Verb::kCreate:
      return CheckMirrorPod(q);
    case Verb::kDelete:
      if (q.before["spec"]["nodeName"].str() != q.node) {
        return StrCat("node ", node, " can only delete pods with spec.nodeName set to itself");
      }
      return std::nullopt;
    default:
      return StrCat("unexpected operation ", Quote(VerbName(q.request.verb)), ", node ", node,
                    " can only create and delete mirror pods");
  }
}

// Labels in the domains of Kubernetes that a node may set about itself.
bool IsNodesOwnLabel(std::string_view label) {
  static const std::set<std::string_view> kOwn = {
      "kubernetes.io/hostname",
      "kubernetes.io/arch",
      "kubernetes.io/os",
      "beta.kubernetes.io/arch",
      "beta.kubernetes.io/os",
      "beta.kubernetes.io/instance-type",
      "node.kubernetes.io/instance-type",
      "topology.kubernetes.io/region",
      "topology.kubernetes.io/zone",
      "failure-domain.beta.kubernetes.io/region",
      "failure-domain.beta.kubernetes.io/zone",
      "node.kubernetes.io/windows-build",
  };
  if (kOwn.contains(label)) return true;
  const std::string_view domain = label.substr(0, label.find('/'));
  for (std::string_view each : {"kubelet.kubernetes.io", "node.kubernetes.io"}) {
    if (domain == each || domain.ends_with(StrCat(".", each))) return true;
  }
  return false;
}

bool IsRestrictedLabel(std::string_view label) {
  const std::size_t slash = label.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view domain = label.substr(0, slash);
  for (std::string_view each : {"kubernetes.io", "k8s.io"}) {
    if (domain == each || domain.ends_with(StrCat(".", each))) return !IsNodesOwnLabel(label);
  }
  return false;
}

// The restricted labels that differ, with commas.
std::string ChangedRestrictedLabels(Value now, Value then) {
  std::set<std::string_view> changed;
  for (const api::MemberView& label : now.members()) {
    if (IsRestrictedLabel(label.name) &&
        (!then[label.name].exists() || then[label.name].str() != label.value.str())) {
      changed.insert(label.name);
    }
  }
  for (const api::MemberView& label : then.members()) {
    if (IsRestrictedLabel(label.name) && !now[label.name].exists()) changed.insert(label.name);
  }
  return Join(changed, ", ");
}

Refusal CheckNode(const Question& q) {
  const std::string node = Quote(q.node);
  const std::string_view named = q.request.verb == Verb::kCreate
                                     ? q.object["metadata"]["name"].str()
                                     : std::string_view(q.request.name);
  if (named != q.node) {
    return StrCat("node ", node, " is not allowed to modify node ", Quote(named));
  }
  if (q.request.verb == Verb::kDelete) {
    return StrCat("node ", node, " is not allowed to delete itself");
  }
  const std::string labels =
      ChangedRestrictedLabels(q.object["metadata"]["labels"], q.before["metadata"]["labels"]);
  if (!labels.empty()) {
    return StrCat("node ", node,
                  q.request.verb == Verb::kCreate ? " is not allowed to set the following labels: "
                                                  : " is not allowed to modify labels: ",
                  labels);
  }
  if (q.request.verb != Verb::kCreate) {
    const Value now = q.object["spec"]["taints"];
    const Value then = q.before["spec"]["taints"];
    if (!(now.empty() && then.empty()) && !api::Equal(now, then)) {
      return StrCat("node ", node, " is not allowed to modify taints");
    }
  }
  return std::nullopt;
}

Refusal CheckLease(const Question& q) {
  if (q.request.namespace_ != kLeaseNamespace) {
    return StrCat("can only access leases in the ", Quote(kLeaseNamespace), " system namespace");
  }
  const std::string_view named = q.request.verb == Verb::kCreate
                                     ? q.object["metadata"]["name"].str()
                                     : std::string_view(q.request.name);
  if (named != q.node) {
    return std::string("can only access node lease with the same name as the requesting node");
  }
  return std::nullopt;
}

Refusal CheckSlice(const Question& q) {
  switch (q.request.verb) {
    case Verb::kCreate:
      if (q.object["spec"]["nodeName"].str() == q.node) return std::nullopt;
      return std::string(
          "can only create ResourceSlice with the same NodeName as the requesting node");
    case Verb::kDelete:
    case Verb::kDeleteCollection:
      if (q.before["spec"]["nodeName"].str() == q.node) return std::nullopt;
      return std::string(
          "can only delete ResourceSlice with the same NodeName as the requesting node");
    default:
      if (q.before["spec"]["nodeName"].str() == q.node &&
          q.object["spec"]["nodeName"].str() == q.node) {
        return std::nullopt;
      }
      return std::string(
          "can only update ResourceSlice with the same NodeName as the requesting node");
  }
}

// The node a driver's identity is tied to; "" if it is none or not tied.
std::string_view NodeOfDriver(const UserInfo& user) {
  if (std::ranges::find(user.groups, kNodeDriversGroup) == user.groups.end()) return {};
  const auto found = user.extra.find(std::string(kNodeNameExtra));
  if (found == user.extra.end() || found->second.size() != 1) return {};
  return found->second.front();
}

Refusal CheckAll(const Question& q) {
  const api::KindSchema& kind = *q.request.kind;
  if (kind.group.empty() && kind.kind == "Pod") return CheckPod(q);
  if (kind.group.empty() && kind.kind == "Node") return CheckNode(q);
  if (kind.group == "coordination.k8s.io" && kind.kind == "Lease") return CheckLease(q);
  if (kind.group == "resource.k8s.io" && kind.kind == "ResourceSlice") return CheckSlice(q);
  if (kind.group == "storage.k8s.io" && kind.kind == "CSINode") {
    if (q.object.exists() && q.object["metadata"]["name"].str() != q.node) {
      return std::string("can only access CSINode with the same name as the requesting node");
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Failure> NodeRestriction::Admit(const Request& request, api::Draft* object,
                                              api::Value before, const StrategyContext&) {
  const NodeIdentity node = IdentifyNode(request.user);
  const std::string_view driver_node = node.is_node ? "" : NodeOfDriver(request.user);
  if (!node.is_node && driver_node.empty()) return std::nullopt;
  if (node.is_node && node.name.empty()) {
    return ForbiddenFailure(
        *request.kind, request.name,
        StrCat("could not determine node from user ", Quote(request.user.name)));
  }
  const api::TreePtr frozen = object == nullptr ? nullptr : object->Freeze();
  const Question question{request, node.is_node ? node.name : driver_node,
                          frozen == nullptr ? api::Value() : frozen->root(), before};
  Refusal refusal;
  if (node.is_node) {
    refusal = CheckAll(question);
  } else if (request.kind->group == "resource.k8s.io" && request.kind->kind == "ResourceSlice") {
    refusal = CheckSlice(question);
  }
  if (!refusal) return std::nullopt;
  return ForbiddenFailure(*request.kind, request.name, *refusal);
}

}  // namespace drakkar::apiserver
