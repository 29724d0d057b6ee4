#pragma once

#include <string_view>
#include <vector>

// The default roles of the controllers of Kubernetes 1.37, as text.
namespace drakkar::apiserver {

// A rule in words: each text is a list separated by spaces, `core` is the group without a name.
struct RuleText {
  std::string_view verbs;
  std::string_view groups;
  std::string_view resources;
  std::string_view names = "";
};

// The role system:controller:NAME of the service account NAME in kube-system. All controllers of
// kube-controller-manager are in the list, also those that only it has: with
// --use-service-account-credentials each of them acts under its own account.
struct ControllerRole {
  std::string_view name;
  std::vector<RuleText> rules;
};
std::vector<ControllerRole> ControllerRoles();

}  // namespace drakkar::apiserver
