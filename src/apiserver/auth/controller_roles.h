#pragma once

#include <string_view>
#include <vector>

// The default roles of the controllers of Kubernetes 1.37, as text.
namespace drakkar::apiserver {

// A rule as text: each field is a space-separated list, and `core` is the group with the empty
// name.
struct RuleText {
  std::string_view verbs;
  std::string_view groups;
  std::string_view resources;
  std::string_view names = "";
};

// The role system:controller:NAME of the service account NAME in kube-system. The list has all
// controllers of kube-controller-manager, including those that Drakkar lacks: with
// --use-service-account-credentials each acts under its own account.
struct ControllerRole {
  std::string_view name;
  std::vector<RuleText> rules;
};
std::vector<ControllerRole> ControllerRoles();

}  // namespace drakkar::apiserver
