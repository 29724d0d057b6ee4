#pragma once

#include <set>
#include <string>
#include <string_view>

#include "api/tree/value.h"
#include "apiserver/registry/strategy.h"
#include "apiserver/validation/findings.h"

// Permissions that depend on what a request changes, checked during validation: admin access by a
// label of the namespace, and parts of a claim's status by synthetic subresources.
namespace drakkar::apiserver {

// A claim or template that requests admin access.
void CheckAdminAccess(Findings& out, api::Value requests, std::string_view namespace_,
                      const StrategyContext& context);
// The first status that grants admin access.
void CheckAdminAccessStatus(Findings& out, api::Value claim, api::Value before,
                            const StrategyContext& context);

// Changing status.allocation or status.reservedFor needs "resourceclaims/binding".
void CheckBindingPermission(Findings& out, const api::FieldPath& path, api::Value status,
                            api::Value before, const StrategyContext& context);
// Changing a driver's entries in status.devices needs "resourceclaims/driver" for that driver.
void CheckDriverPermission(Findings& out, const api::FieldPath& path, api::Value status,
                           api::Value before, std::string_view namespace_,
                           const StrategyContext& context);

// Drivers with an entry that was added, removed or changed.
std::set<std::string> ModifiedDrivers(api::Value status, api::Value before);
// The node of an allocation that is for exactly one node; otherwise empty.
std::string_view NodeOfAllocation(api::Value allocation);
// A service account whose token is bound to exactly this node.
bool IsServiceAccountOnNode(const UserInfo& user, std::string_view node);

}  // namespace drakkar::apiserver
