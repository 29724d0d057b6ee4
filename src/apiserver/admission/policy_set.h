#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "apiserver/policy/mutating_policy.h"
#include "apiserver/policy/validating_policy.h"
#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// A ValidatingAdmissionPolicyBinding or MutatingAdmissionPolicyBinding. Immutable.
struct PolicyBinding {
  explicit PolicyBinding(api::ObjectPtr binding);

  api::ObjectPtr object;
  AdmissionMatch match;
  // What a violation of a validating policy leads to.
  bool denies = false;
  bool warns = false;
  bool audits = false;
};

// The policies of one kind that have a binding. A policy is compiled when a request first concerns
// it, and again only if it changes. Each kind has an index of the policies whose rules name it, so
// that others cost nothing. Bound to the API server's loop.
template <typename Policy>
class PolicySetOf {
 public:
  struct Active {
    api::ObjectPtr object;
    AdmissionMatch match;                  // of the policy: known before it is compiled
    std::shared_ptr<const Policy> policy;  // null until it is needed
    std::vector<std::shared_ptr<const PolicyBinding>> bindings;  // by name

    const Policy& Compiled();
  };

  // `core` must outlive this object, unless Detach is called first. Before Attach there are no
  // policies.
  void Attach(Core& core);
  void Detach();

  Core* core() const { return core_; }

  // The policies that may apply to a request for the kind, by name. Valid until the next call.
  const std::vector<Active*>& For(const api::KindSchema& kind);

 private:
  void Refresh();

  Core* core_ = nullptr;
  const WatchCache* policies_ = nullptr;
  const WatchCache* bindings_ = nullptr;
  storage::Revision seen_policies_ = -1;
  storage::Revision seen_bindings_ = -1;
  std::map<std::string, Active> active_;
  std::unordered_map<const api::KindSchema*, std::vector<Active*>> by_kind_;
};

using PolicySet = PolicySetOf<ValidatingPolicy>;
using MutatingPolicySet = PolicySetOf<MutatingPolicy>;

}  // namespace drakkar::apiserver
