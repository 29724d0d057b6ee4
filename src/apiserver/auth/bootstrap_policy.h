#pragma once

#include <functional>
#include <vector>

#include "api/tree/value.h"
#include "apiserver/auth/authenticator.h"
#include "base/env/clock.h"
#include "base/result/result.h"

namespace drakkar::apiserver {

class Core;

// The ClusterRoles and ClusterRoleBindings of a new cluster: those of Kubernetes for users, nodes,
// the scheduler and the controllers, and one for drivers on nodes. Complete objects; roles come
// before their bindings.
std::vector<api::TreePtr> BootstrapPolicy();

// What components that serve HTTPS themselves (such as kube-scheduler) read to learn whom this
// server authenticates: the CA of client certificates in kube-system, and the permission to read
// it. Complete objects; they need the namespace. `front_proxy_ca_pem` has issued this server's own
// certificate towards the servers behind it; `proxies` are those before it.
std::vector<api::TreePtr> DelegatedAuthentication(std::string_view client_ca_pem,
                                                  std::string_view front_proxy_ca_pem,
                                                  const FrontProxies& proxies = {});
// That ConfigMap, with what it lacks of `wanted`: certificates, names and headers that others have
// written stay, because another server may use them. Null if it lacks nothing.
api::TreePtr MergeAuthentication(const api::TreePtr& map, api::Value wanted);

// The ConfigMap in kube-system that says since when the use of tokens from Secrets is tracked. A
// controller manager of Kubernetes removes such tokens that nobody has used since. This server does
// not accept them.
api::TreePtr LegacyTokenTracking(WallTime since);

// The rules of system:node that do not depend on the node's pods, as an array.
api::TreePtr NodeRules();

// `existing` with what it lacks of `wanted`, a role or binding of ours: rules, subjects and labels,
// as Kubernetes reconciles its roles at startup. Null if nothing is missing, or if the object has
// the annotation rbac.authorization.kubernetes.io/autoupdate: "false".
api::TreePtr ReconcilePolicy(api::Value existing, api::Value wanted);

// Creates missing objects and leaves existing ones alone. Call it after Core::Start.
void EnsureBootstrapPolicy(Core& core, std::function<void(Result<void>)> done);

}  // namespace drakkar::apiserver
