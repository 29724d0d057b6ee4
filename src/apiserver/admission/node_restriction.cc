#include "apiserver/admission/node_restriction.h"

#include <algorithm>
#include <set>

#include "api/meta/annotations.h"
#include "api/scheme/scheme.h"
#include "apiserver/auth/pod_references.h"
#include "apiserver/request/node_identity.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

constexpr std::string_view kLeaseNamespace = "kube-node-lease";

// The request, with the object before and after it.
struct Question {
  const Request& request;
  const StrategyContext& context;
  std::string_view node;
  const api::TreePtr& tree;  // of `object`; null on delete
  Value object;              // absent on delete
  Value before;              // absent on create
};

template <typename... Parts>
Error Refused(const Parts&... parts) {
  return {ErrorCode::kForbidden, StrCat(parts...)};
}

bool Changed(const Question& q, api::FieldName member) {
  const Value now = q.object["status"][member];
  const Value then = q.before["status"][member];
  // An empty list equals none.
  if (!now.has_value() || now.empty()) return then.has_value() && !then.empty();
  return !api::Equal(now, then);
}

// A mirror pod must be owned by its node.
Result<void> CheckMirrorOwner(const Question& q) {
  const std::string node = Quote(q.node);
  const Value owners = q.object["metadata"]["ownerReferences"];
  if (owners.size() > 1) {
    return Refused("node ", node,
                   " can only create pods with a single owner reference set to itself");
  }
  const Value owner = owners.at(0);
  if (owner["apiVersion"].str() != "v1" || owner["kind"].str() != "Node" ||
      owner["name"].str() != q.node) {
    return Refused("node ", node, " can only create pods with an owner reference set to itself");
  }
  if (!owner["controller"].boolean()) {
    return Refused("node ", node,
                   " can only create pods with a controller owner reference set to itself");
  }
  if (owner["blockOwnerDeletion"].boolean()) {
    return Refused("node ", node, " must not set blockOwnerDeletion on an owner reference");
  }
  const api::ObjectPtr self = q.context.lookup("", "nodes", std::string(q.node));
  const std::string_view uid = self == nullptr ? std::string_view() : self->uid();
  if (self == nullptr || owner["uid"].str() != uid) {
    return Refused("node ", q.node, " UID mismatch: expected ", Quote(uid), " got ",
                   Quote(owner["uid"].str()));
  }
  return Ok();
}

Result<void> CheckMirrorPod(const Question& q) {
  const std::string node = Quote(q.node);
  if (!q.object["metadata"]["annotations"].Entry(api::kMirrorAnnotation).exists()) {
    return Refused("pod does not have ", Quote(api::kMirrorAnnotation), " annotation, node ", node,
                   " can only create mirror pods");
  }
  if (q.object["spec"]["nodeName"].str() != q.node) {
    return Refused("node ", node, " can only create pods with spec.nodeName set to itself");
  }
  RETURN_IF_ERROR(CheckMirrorOwner(q));
  // A mirror pod describes what is already running; it must not give the node access to anything
  // new.
  const Value spec = q.object["spec"];
  if (!spec["serviceAccountName"].str().empty()) {
    return Refused("node ", node, " can not create pods that reference a service account");
  }
  for (Value volume : spec["volumes"].elements()) {
    for (Value source : volume["projected"]["sources"].elements()) {
      for (const api::FieldName each :
           api::FieldNames{"clusterTrustBundle", "podCertificate", "serviceAccountToken"}) {
        if (!source[each].has_value()) continue;
        return Refused("node ", node, " can not create pods that reference ", ToLower(each), "s");
      }
    }
  }
  if (!spec["resourceClaims"].empty()) {
    return Refused("node ", node, " can not create pods that reference resourceclaims");
  }
  // The node authorizer uses the same list, so whatever would give access is rejected here.
  for (const std::string& reference : ReferencesOf(api::Object(q.tree))) {
    const std::string_view resource = std::string_view(reference).substr(0, reference.find('/'));
    if (resource == "pods") continue;  // itself
    return Refused("node ", node, " can not create pods that reference ", resource);
  }
  return Ok();
}

Result<void> CheckPodStatus(const Question& q) {
  const std::string node = Quote(q.node);
  if (q.before["spec"]["nodeName"].str() != q.node) {
    return Refused("node ", node,
                   " can only update pod status for pods with spec.nodeName set to itself");
  }
  const Value labels = q.object["metadata"]["labels"];
  const Value labels_before = q.before["metadata"]["labels"];
  if (!(labels.empty() && labels_before.empty()) && !api::Equal(labels, labels_before)) {
    return Refused("node ", node, " cannot update labels through pod status");
  }
  if (Changed(q, "resourceClaimStatuses")) {
    return Refused("node ", node, " cannot update resource claim statues");
  }
  if (Changed(q, "extendedResourceClaimStatus")) {
    return Refused("node ", node, " cannot update extended resource claim status");
  }
  if (Changed(q, "nodeAllocatableResourceClaimStatuses")) {
    return Refused("node ", node, " cannot update node allocatable resource claim statuses");
  }
  return Ok();
}

Result<void> CheckPod(const Question& q) {
  const std::string node = Quote(q.node);
  const std::string& subresource = q.request.subresource;
  if (subresource == "status") return CheckPodStatus(q);
  if (subresource == "eviction") {
    if (q.before.exists() && q.before["spec"]["nodeName"].str() != q.node) {
      return Refused("node ", node, " can only evict pods with spec.nodeName set to itself");
    }
    return Ok();
  }
  if (!subresource.empty()) {
    return Refused("unexpected pod subresource ", Quote(subresource),
                   ", only 'status' and 'eviction' are allowed");
  }
  switch (q.request.verb) {
    case Verb::kCreate:
      return CheckMirrorPod(q);
    case Verb::kDelete:
      if (q.before["spec"]["nodeName"].str() != q.node) {
        return Refused("node ", node, " can only delete pods with spec.nodeName set to itself");
      }
      return Ok();
    default:
      return Refused("unexpected operation ", Quote(VerbName(q.request.verb)), ", node ", node,
                     " can only create and delete mirror pods");
  }
}

// Labels in Kubernetes' own domains that a node may set on itself.
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

// The restricted labels that differ, separated by commas.
std::string ChangedRestrictedLabels(Value now, Value then) {
  std::set<std::string_view> changed;
  for (const api::MemberView& label : now.members()) {
    if (IsRestrictedLabel(label.name) &&
        (!then.Entry(label.name).exists() || then.Entry(label.name).str() != label.value.str())) {
      changed.insert(label.name);
    }
  }
  for (const api::MemberView& label : then.members()) {
    if (IsRestrictedLabel(label.name) && !now.Entry(label.name).exists())
      changed.insert(label.name);
  }
  return Join(changed, ", ");
}

Result<void> CheckNode(const Question& q) {
  const std::string node = Quote(q.node);
  const std::string_view named = q.request.verb == Verb::kCreate
                                     ? q.object["metadata"]["name"].str()
                                     : std::string_view(q.request.name);
  if (named != q.node) {
    return Refused("node ", node, " is not allowed to modify node ", Quote(named));
  }
  if (q.request.verb == Verb::kDelete) {
    return Refused("node ", node, " is not allowed to delete itself");
  }
  // Deleting an owner deletes its objects: a node could choose one, be deleted with it, and
  // register again without the labels and taints it was given (CVE-2025-5187).
  const Value owners = q.object["metadata"]["ownerReferences"];
  const Value owners_before = q.before["metadata"]["ownerReferences"];
  if (!(owners.empty() && owners_before.empty()) && !api::Equal(owners, owners_before)) {
    return Refused("node ", node, " is not allowed to modify ownerReferences");
  }
  const std::string labels =
      ChangedRestrictedLabels(q.object["metadata"]["labels"], q.before["metadata"]["labels"]);
  if (!labels.empty()) {
    return Refused("node ", node,
                   q.request.verb == Verb::kCreate ? " is not allowed to set the following labels: "
                                                   : " is not allowed to modify labels: ",
                   labels);
  }
  if (q.request.verb != Verb::kCreate) {
    const Value now = q.object["spec"]["taints"];
    const Value then = q.before["spec"]["taints"];
    if (!(now.empty() && then.empty()) && !api::Equal(now, then)) {
      return Refused("node ", node, " is not allowed to modify taints");
    }
  }
  return Ok();
}

Result<void> CheckLease(const Question& q) {
  if (q.request.namespace_ != kLeaseNamespace) {
    return Refused("can only access leases in the ", Quote(kLeaseNamespace), " system namespace");
  }
  const std::string_view named = q.request.verb == Verb::kCreate
                                     ? q.object["metadata"]["name"].str()
                                     : std::string_view(q.request.name);
  if (named != q.node) {
    return Refused("can only access node lease with the same name as the requesting node");
  }
  return Ok();
}

Result<void> CheckSlice(const Question& q) {
  switch (q.request.verb) {
    case Verb::kCreate:
      if (q.object["spec"]["nodeName"].str() == q.node) return Ok();
      return Refused("can only create ResourceSlice with the same NodeName as the requesting node");
    case Verb::kDelete:
    case Verb::kDeleteCollection:
      if (q.before["spec"]["nodeName"].str() == q.node) return Ok();
      return Refused("can only delete ResourceSlice with the same NodeName as the requesting node");
    default:
      if (q.before["spec"]["nodeName"].str() == q.node &&
          q.object["spec"]["nodeName"].str() == q.node) {
        return Ok();
      }
      return Refused("can only update ResourceSlice with the same NodeName as the requesting node");
  }
}

// Whether a service account's token belongs to a pod that runs once on every node, as the node part
// of a driver does.
bool IsOnePodPerNode(const UserInfo& user, const StrategyContext& context) {
  constexpr std::string_view kAccount = "system:serviceaccount:";
  const std::string_view pod_name = OnlyExtra(user, kPodNameExtra);
  if (pod_name.empty() || !std::string_view(user.name).starts_with(kAccount)) return false;
  std::string_view home = std::string_view(user.name).substr(kAccount.size());
  home = home.substr(0, home.find(':'));
  const api::ObjectPtr pod = context.lookup("", "pods", StrCat(home, "/", pod_name));
  if (pod == nullptr) return false;
  for (Value owner : (*pod)["metadata"]["ownerReferences"].elements()) {
    if (owner["kind"].str() == "DaemonSet" && owner["controller"].boolean()) return true;
  }
  return false;
}

// A node's slices are written only from that node, and the node part of a driver writes no others
// (docs/decisions/driver-confinement.md). The verb "arbitrary-node:<verb>" lifts the restriction.
Result<void> CheckSliceOfDriver(const Question& q) {
  const UserInfo& user = q.request.user;
  bool is_own = !q.node.empty();
  bool is_anothers = false;
  for (Value slice : {q.object, q.before}) {
    if (!slice.exists()) continue;
    const std::string_view node = slice["spec"]["nodeName"].str();
    is_own = is_own && node == q.node;
    is_anothers = is_anothers || (!node.empty() && node != q.node);
  }
  if (is_own) return Ok();
  if (!is_anothers && !IsNodeDriver(user) && !IsOnePodPerNode(user, q.context)) return Ok();
  const std::string verb = StrCat("arbitrary-node:", VerbName(q.request.verb));
  if (q.context.authorize(verb, "resource.k8s.io", "resourceslices", "", "", q.request.name)
          .allowed) {
    return Ok();
  }
  return Refused("user ", Quote(user.name), " acts from node ", Quote(q.node), " and can only ",
                 VerbName(q.request.verb),
                 " ResourceSlices with that nodeName; others need the verb ", Quote(verb));
}

bool MountsCertificateOf(Value pod, std::string_view signer) {
  for (const Value volume : pod["spec"]["volumes"].elements()) {
    for (const Value source : volume["projected"]["sources"].elements()) {
      if (source["podCertificate"]["signerName"].str() == signer) return true;
    }
  }
  return false;
}

// A node asks for certificates of its own pods only, as they are, and of signers that they name.
Result<void> CheckPodCertificate(const Question& q) {
  if (q.request.verb != Verb::kCreate || !q.request.subresource.empty()) {
    return Refused("unexpected operation ", Quote(VerbName(q.request.verb)));
  }
  const Value spec = q.object["spec"];
  if (spec["nodeName"].str() != q.node) {
    return Refused("PodCertificateRequest.Spec.NodeName=", Quote(spec["nodeName"].str()),
                   ", which is not the requesting node ", Quote(q.node));
  }
  const std::string home = StrCat(q.request.namespace_, "/");
  const std::string shown = Quote(home + std::string(spec["podName"].str()));
  const api::ObjectPtr node = q.context.lookup("", "nodes", std::string(q.node));
  if (node == nullptr || node->uid() != spec["nodeUID"].str()) {
    return Refused("PodCertificateRequest for pod ", shown, " names node UID ",
                   Quote(spec["nodeUID"].str()), ", inconsistent with the running node");
  }
  const api::ObjectPtr pod =
      q.context.lookup("", "pods", home + std::string(spec["podName"].str()));
  if (pod == nullptr || pod->uid() != spec["podUID"].str()) {
    return Refused("PodCertificateRequest for pod ", shown, " contains pod UID (",
                   Quote(spec["podUID"].str()), ") which differs from running pod");
  }
  if ((*pod)["spec"]["nodeName"].str() != q.node) {
    return Refused("pod ", shown, " is not running on node ", Quote(q.node),
                   " named in the PodCertificateRequest");
  }
  if ((*pod)["metadata"]["annotations"].Entry(api::kMirrorAnnotation).exists()) {
    return Refused("pod ", shown, " is a mirror pod");
  }
  const std::string_view account = spec["serviceAccountName"].str();
  if (account != (*pod)["spec"]["serviceAccountName"].str()) {
    return Refused("PodCertificateRequest for pod ", shown, " contains serviceAccountName (",
                   Quote(account), ") that differs from running pod (",
                   Quote((*pod)["spec"]["serviceAccountName"].str()), ")");
  }
  const api::ObjectPtr owner = q.context.lookup("", "serviceaccounts", home + std::string(account));
  if (owner == nullptr || owner->uid() != spec["serviceAccountUID"].str()) {
    return Refused("PodCertificateRequest for pod ", shown, " names service account UID ",
                   Quote(spec["serviceAccountUID"].str()),
                   ", which differs from the running service account");
  }
  std::string signer(spec["signerName"].str());
  if (MountsCertificateOf(pod->root(), signer)) return Ok();
  std::ranges::replace(signer, '/', ':');
  if (q.context
          .authorize("request-serviceaccounts-podcertificate-signer", "certificates.k8s.io", signer,
                     "", q.request.namespace_, account)
          .allowed) {
    return Ok();
  }
  return Refused("pod ", shown, " does not mount a podCertificate projected volume for signer ",
                 Quote(spec["signerName"].str()));
}

Result<void> CheckAll(const Question& q) {
  const api::KindSchema& kind = *q.request.kind;
  if (kind.group.empty() && kind.kind == "Pod") return CheckPod(q);
  if (kind.group.empty() && kind.kind == "Node") return CheckNode(q);
  if (kind.group == "coordination.k8s.io" && kind.kind == "Lease") return CheckLease(q);
  if (kind.group == "resource.k8s.io" && kind.kind == "ResourceSlice") return CheckSlice(q);
  if (kind.kind == "PodCertificateRequest" && kind.group == "certificates.k8s.io") {
    return CheckPodCertificate(q);
  }
  if (kind.group == "storage.k8s.io" && kind.kind == "CSINode") {
    if (q.object.exists() && q.object["metadata"]["name"].str() != q.node) {
      return Refused("can only access CSINode with the same name as the requesting node");
    }
  }
  return Ok();
}

}  // namespace

std::optional<Failure> NodeRestriction::Admit(const Request& request, api::Draft* object,
                                              api::Value before, const StrategyContext& context) {
  const NodeIdentity node = IdentifyNode(request.user);
  const bool is_slice =
      request.kind->kind == "ResourceSlice" && request.kind->group == "resource.k8s.io";
  if (!node.is_node && !is_slice) return std::nullopt;
  if (node.is_node && node.name.empty()) {
    return ForbiddenFailure(
        *request.kind, request.name,
        StrCat("could not determine node from user ", Quote(request.user.name)));
  }
  const std::string_view name = node.is_node ? node.name : NodeOfUser(request.user);
  if (!node.is_node && name.empty() && !IsNodeDriver(request.user)) return std::nullopt;
  const api::TreePtr tree = object == nullptr ? nullptr : object->Freeze();
  const Question question{
      request, context, name, tree, tree == nullptr ? api::Value() : tree->root(), before};
  const Result<void> checked = node.is_node ? CheckAll(question) : CheckSliceOfDriver(question);
  if (checked.ok()) return std::nullopt;
  return ForbiddenFailure(*request.kind, request.name, checked.error().message);
}

}  // namespace drakkar::apiserver
