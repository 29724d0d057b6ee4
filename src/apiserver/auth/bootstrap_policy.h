#pragma once

#include <functional>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::apiserver {

class Core;

// The ClusterRoles and ClusterRoleBindings that a cluster starts with: those of Kubernetes for
// users, nodes, the scheduler and the controllers, and one for drivers on nodes. Complete objects;
// roles come before the bindings that name them.
std::vector<api::TreePtr> BootstrapPolicy();

// What components that serve HTTPS themselves (a kube-scheduler, say) look up to know whom this
// server lets in: the authority of client certificates in kube-system, and the right to read it.
// Complete objects; they need the namespace.
std::vector<api::TreePtr> DelegatedAuthentication(std::string_view client_ca_pem,
                                                  std::string_view front_proxy_ca_pem);

// The rules of system:node that need no look at what the node's pods name; an array of rules.
api::TreePtr NodeRules();

// What of `wanted`, a role or binding of ours, `existing` does not have yet, added to it: rules,
// subjects and labels, as Kubernetes brings its roles up to date at start-up. Null if nothing is
// missing, or if the object's annotation rbac.authorization.kubernetes.io/autoupdate is "false".
api::TreePtr ReconcilePolicy(api::Value existing, api::Value wanted);

// Creates what is not there yet; what is there stays as it is. For after Core::Start.
void EnsureBootstrapPolicy(Core& core, std::function<void(Result<void>)> done);

}  // namespace drakkar::apiserver
