#include "apiserver/auth/node_authorizer.h"

#include <algorithm>

#include "api/scheme/scheme.h"
#include "apiserver/auth/bootstrap_policy.h"
#include "apiserver/auth/demanded_value.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kLeaseNamespace = "kube-node-lease";
constexpr std::string_view kNoRelation = "no relationship found between node '";

bool OneOf(std::string_view verb, std::initializer_list<std::string_view> verbs) {
  return std::ranges::find(verbs, verb) != verbs.end();
}

}  // namespace

NodeAuthorizer::NodeAuthorizer() {
  const api::TreePtr rules = NodeRules();
  for (api::Value rule : rules->root().elements()) rules_.emplace_back(rule);
}

NodeAuthorizer::~NodeAuthorizer() = default;

void NodeAuthorizer::Attach(Core& core) {
  Detach();
  core_ = &core;
}

void NodeAuthorizer::Detach() {
  pods_.reset();
  references_.Clear();
  core_ = nullptr;
}

// False if the pods cannot be followed. Then pods give nodes no access.
bool NodeAuthorizer::FollowPods() {
  if (pods_ != nullptr) return true;
  const WatchCache* cache = core_ == nullptr ? nullptr : core_->FindCache("", "pods");
  if (cache == nullptr) return false;
  Request request;
  request.user = {.name = "system:apiserver", .groups = {"system:masters"}};
  request.verb = Verb::kWatch;
  request.kind = api::FindKind("", "v1", "Pod");
  // Watches from now: existing pods are read from the cache, in the same turn of the loop.
  references_.Clear();
  for (const auto& [key, pod] : cache->objects()) references_.Add(*pod);
  request.resource_version = std::to_string(core_->revision());
  Core::WatchStart start = core_->StartWatch(
      request, storage::Mark::kApplied,
      [this](const std::vector<Change>& changes) {
        for (const Change& change : changes) {
          if (change.type == ChangeType::kBookmark) continue;
          if (change.previous != nullptr) references_.Remove(*change.previous);
          if (change.type != ChangeType::kDeleted) references_.Add(*change.object);
        }
      },
      // The next check starts a new watch.
      [this](const Error&) { pods_.reset(); });
  pods_ = std::move(start.watcher);
  return pods_ != nullptr;
}

Decision NodeAuthorizer::Check(const Attributes& attributes) {
  const NodeIdentity node = IdentifyNode(attributes.user);
  if (!node.is_node) return Decision::Deny();
  if (node.name.empty()) return Decision::Deny("unknown node for user");
  const std::string_view resource = attributes.resource;
  if (attributes.group.empty()) {
    if (resource == "secrets" || resource == "configmaps") {
      return CheckReferenced(node.name, attributes, false);
    }
    if (resource == "persistentvolumeclaims" && attributes.subresource.empty()) {
      return CheckReferenced(node.name, attributes, true);
    }
    if (resource == "serviceaccounts") return CheckToken(node.name, attributes);
    if (resource == "nodes") return CheckNode(node.name, attributes);
    if (resource == "pods") return CheckPod(node.name, attributes);
  }
  if (attributes.group == "resource.k8s.io") {
    if (resource == "resourceclaims") return CheckReferenced(node.name, attributes, true);
    if (resource == "resourceslices") return CheckSlice(node.name, attributes);
  }
  if (attributes.group == "coordination.k8s.io" && resource == "leases") {
    return CheckLease(node.name, attributes);
  }
  if (attributes.group == "certificates.k8s.io" && resource == "podcertificaterequests") {
    return CheckPodCertificate(node.name, attributes);
  }
  if (attributes.group == "storage.k8s.io" && resource == "csinodes") {
    return CheckCsiNode(node.name, attributes);
  }
  return CheckCommon(attributes);
}

Decision NodeAuthorizer::CheckReferenced(std::string_view node, const Attributes& attributes,
                                         bool only_get) {
  if (only_get ? attributes.verb != "get" : !OneOf(attributes.verb, {"get", "list", "watch"})) {
    return Decision::Deny(only_get ? "can only get individual resources of this type"
                                   : "can only read resources of this type");
  }
  if (!attributes.subresource.empty()) return Decision::Deny("cannot read subresource");
  std::string_view name = attributes.name;
  if (name.empty()) name = DemandedValue(attributes.field_selector, "metadata.name");
  if (name.empty()) return Decision::Deny("No Object name found");
  if (attributes.namespace_.empty()) {
    return Decision::Deny("can only read namespaced object of this type");
  }
  if (!FollowPods() || !references_.Has(node, attributes.resource, attributes.namespace_, name)) {
    return Decision::Deny(StrCat(kNoRelation, node, "' and this object"));
  }
  return Decision::Allow();
}

Decision NodeAuthorizer::CheckToken(std::string_view node, const Attributes& attributes) {
  if (attributes.verb == "get" && attributes.subresource.empty()) {
    // For image credentials: the accounts of its own pods.
    return CheckReferenced(node, attributes, true);
  }
  if (attributes.verb != "create" || attributes.subresource != "token") {
    return Decision::Deny("can only get individual resources of this type");
  }
  if (attributes.name.empty() || !FollowPods() ||
      !references_.Has(node, "serviceaccounts", attributes.namespace_, attributes.name)) {
    return Decision::Deny(StrCat(kNoRelation, node, "' and this object"));
  }
  return Decision::Allow();
}

Decision NodeAuthorizer::CheckLease(std::string_view node, const Attributes& attributes) const {
  if (!OneOf(attributes.verb, {"get", "create", "update", "patch", "delete"})) {
    return Decision::Deny("can only get, create, update, patch, or delete a node lease");
  }
  if (attributes.namespace_ != kLeaseNamespace) {
    return Decision::Deny(
        StrCat("can only access leases in the ", Quote(kLeaseNamespace), " system namespace"));
  }
  // A create has no name in the request; NodeRestriction checks the object.
  if (attributes.verb != "create" && attributes.name != node) {
    return Decision::Deny("can only access node lease with the same name as the requesting node");
  }
  return Decision::Allow();
}

Decision NodeAuthorizer::CheckCsiNode(std::string_view node, const Attributes& attributes) const {
  if (!attributes.subresource.empty()) {
    return Decision::Deny("cannot authorize CSINode subresources");
  }
  if (!OneOf(attributes.verb, {"get", "create", "update", "patch", "delete"})) {
    return Decision::Deny("can only get, create, update, patch, or delete a CSINode");
  }
  if (attributes.verb != "create" && attributes.name != node) {
    return Decision::Deny("can only access CSINode with the same name as the requesting node");
  }
  return Decision::Allow();
}

Decision NodeAuthorizer::CheckPodCertificate(std::string_view node,
                                             const Attributes& attributes) const {
  if (!attributes.subresource.empty()) {
    return Decision::Deny("nodes may not access the status subresource of PodCertificateRequests");
  }
  if (attributes.verb == "create") return Decision::Allow();  // then NodeRestriction
  if (attributes.verb == "get") {
    const api::ObjectPtr request =
        core_ == nullptr ? nullptr
                         : core_->Find("certificates.k8s.io", "podcertificaterequests",
                                       StrCat(attributes.namespace_, "/", attributes.name));
    if (request != nullptr && (*request)["spec"]["nodeName"].str() == node) {
      return Decision::Allow();
    }
    return Decision::Deny(StrCat(kNoRelation, node, "' and this object"));
  }
  if (OneOf(attributes.verb, {"list", "watch"})) {
    if (DemandedValue(attributes.field_selector, "spec.nodeName") == node) return Decision::Allow();
    return Decision::Deny(
        "can only list/watch podcertificaterequests with nodeName field selector");
  }
  return Decision::Deny(StrCat("nodes may not ", attributes.verb, " podcertificaterequests"));
}

Decision NodeAuthorizer::CheckSlice(std::string_view node, const Attributes& attributes) const {
  if (!attributes.subresource.empty()) {
    return Decision::Deny("cannot authorize ResourceSlice subresources");
  }
  if (attributes.verb == "create") return Decision::Allow();  // then NodeRestriction
  if (OneOf(attributes.verb, {"get", "update", "patch", "delete"})) {
    const api::ObjectPtr slice = core_ == nullptr ? nullptr
                                                  : core_->Find("resource.k8s.io", "resourceslices",
                                                                std::string(attributes.name));
    if (slice == nullptr || (*slice)["spec"]["nodeName"].str() != node) {
      return Decision::Deny(StrCat(kNoRelation, node, "' and this object"));
    }
    return Decision::Allow();
  }
  if (OneOf(attributes.verb, {"list", "watch", "deletecollection"})) {
    if (DemandedValue(attributes.field_selector, "spec.nodeName") == node) return Decision::Allow();
    return Decision::Deny(
        "can only list/watch/deletecollection resourceslices with nodeName field selector");
  }
  return Decision::Deny(
      "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, "
      "update, patch, delete, deletecollection");
}

Decision NodeAuthorizer::CheckNode(std::string_view node, const Attributes& attributes) const {
  if (!attributes.subresource.empty() && attributes.subresource != "status") {
    return Decision::Deny("cannot access this subresource of nodes");
  }
  if (OneOf(attributes.verb, {"list", "watch"})) {
    if (DemandedValue(attributes.field_selector, "metadata.name") == node) return Decision::Allow();
    return Decision::Deny(
        StrCat("node '", node, "' cannot read all nodes, only its own Node object"));
  }
  if (OneOf(attributes.verb, {"get", "update", "patch"})) {
    if (attributes.name == node) return Decision::Allow();
    return Decision::Deny(StrCat("node '", node, "' cannot ",
                                 attributes.verb == "get" ? "read '" : "modify '", attributes.name,
                                 "', only its own Node object"));
  }
  // Registration; NodeRestriction checks the name.
  if (attributes.verb == "create" && attributes.subresource.empty()) return Decision::Allow();
  return Decision::Deny("nodes may only be created, read, updated and patched by themselves");
}

Decision NodeAuthorizer::CheckPod(std::string_view node, const Attributes& attributes) {
  const std::string_view verb = attributes.verb;
  if (attributes.subresource.empty()) {
    if (verb == "create") return Decision::Allow();  // mirror pods; then NodeRestriction
    if (OneOf(verb, {"list", "watch"})) {
      if (DemandedValue(attributes.field_selector, "spec.nodeName") == node)
        return Decision::Allow();
      return Decision::Deny("can only list/watch pods with spec.nodeName field selector");
    }
  }
  bool known = false;
  if (attributes.subresource.empty()) known = OneOf(verb, {"get", "delete"});
  if (attributes.subresource == "status") known = OneOf(verb, {"get", "update", "patch"});
  if (attributes.subresource == "eviction") known = verb == "create";
  if (!known) return Decision::Deny("nodes may read, delete and evict pods and write their status");
  if (attributes.name.empty() || !FollowPods() ||
      !references_.Has(node, "pods", attributes.namespace_, attributes.name)) {
    return Decision::Deny(StrCat(kNoRelation, node, "' and this object"));
  }
  return Decision::Allow();
}

Decision NodeAuthorizer::CheckCommon(const Attributes& attributes) const {
  const std::uint32_t bit = PolicyRule::BitOf(attributes.verb);
  for (const PolicyRule& rule : rules_) {
    if (rule.Allows(attributes, bit)) return Decision::Allow();
  }
  return Decision::Deny();
}

}  // namespace drakkar::apiserver
