#include "apiserver/admission/policy_set.h"

#include "api/scheme/scheme.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";

AdmissionMatch ConstraintsOf(api::Value match) {
  return AdmissionMatch(match, match["resourceRules"], match["excludeResourceRules"]);
}

}  // namespace

PolicyBinding::PolicyBinding(api::ObjectPtr binding)
    : object(std::move(binding)), match(ConstraintsOf(object->root()["spec"]["matchResources"])) {
  for (api::Value action : object->root()["spec"]["validationActions"].elements()) {
    denies = denies || action.str() == "Deny";
    warns = warns || action.str() == "Warn";
    audits = audits || action.str() == "Audit";
  }
}

template <typename Policy>
const Policy& PolicySetOf<Policy>::Active::Compiled() {
  if (policy == nullptr) policy = std::make_shared<const Policy>(object);
  return *policy;
}

template <typename Policy>
void PolicySetOf<Policy>::Attach(Core& core) {
  Detach();
  core_ = &core;
  policies_ = core.FindCache(kGroup, Policy::kPlural);
  bindings_ = core.FindCache(kGroup, Policy::kBindingsPlural);
}

template <typename Policy>
void PolicySetOf<Policy>::Detach() {
  core_ = nullptr;
  policies_ = bindings_ = nullptr;
  seen_policies_ = seen_bindings_ = -1;
  active_.clear();
  by_kind_.clear();
}

template <typename Policy>
const std::vector<typename PolicySetOf<Policy>::Active*>& PolicySetOf<Policy>::For(
    const api::KindSchema& kind) {
  static const std::vector<Active*> none;
  if (policies_ == nullptr) return none;
  if (policies_->last_change() != seen_policies_ || bindings_->last_change() != seen_bindings_) {
    Refresh();
  }
  // Policies must not lock out the administrator who wants to change them.
  if (active_.empty() || kind.group == kGroup) return none;
  const auto [found, is_new] = by_kind_.try_emplace(&kind);
  if (is_new) {
    for (auto& [name, active] : active_) {
      if (active.match.ConcernsKind(kind)) found->second.push_back(&active);
    }
  }
  return found->second;
}

template <typename Policy>
void PolicySetOf<Policy>::Refresh() {
  seen_policies_ = policies_->last_change();
  seen_bindings_ = bindings_->last_change();
  by_kind_.clear();
  std::map<std::string, Active> previous = std::exchange(active_, {});
  std::map<std::string, std::shared_ptr<const PolicyBinding>> known;
  for (auto& [name, active] : previous) {
    for (auto& binding : active.bindings) known.emplace(binding->object->name(), binding);
  }
  for (const auto& [key, object] : bindings_->objects()) {
    const std::string policy_name(object->root()["spec"]["policyName"].str());
    const api::ObjectPtr policy = policies_->Find(policy_name);
    if (policy == nullptr) continue;
    Active& active = active_[policy_name];
    if (active.object == nullptr) {
      const auto before = previous.find(policy_name);
      const bool is_same = before != previous.end() && before->second.object == policy;
      active.object = policy;
      active.match = is_same ? std::move(before->second.match)
                             : ConstraintsOf(policy->root()["spec"]["matchConstraints"]);
      if (is_same) active.policy = std::move(before->second.policy);
    }
    const auto seen = known.find(key);
    active.bindings.push_back(seen != known.end() && seen->second->object == object
                                  ? seen->second
                                  : std::make_shared<const PolicyBinding>(object));
  }
}

template class PolicySetOf<ValidatingPolicy>;
template class PolicySetOf<MutatingPolicy>;

}  // namespace drakkar::apiserver
