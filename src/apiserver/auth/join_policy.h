#pragma once

#include <vector>

#include "api/tree/value.h"

namespace drakkar::apiserver {

// The namespaced Roles and RoleBindings for joining: the controllers that sign cluster-info and
// delete expired tokens may access the token Secrets in kube-system, and everybody may read
// cluster-info. Complete objects; they need the namespaces kube-system and kube-public.
std::vector<api::TreePtr> JoinPolicy();

}  // namespace drakkar::apiserver
