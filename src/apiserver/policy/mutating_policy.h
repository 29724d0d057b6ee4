#pragma once

#include <string>
#include <vector>

#include "apiserver/policy/admission_policy_base.h"

namespace drakkar::apiserver {

// A MutatingAdmissionPolicy with its expressions compiled. Immutable.
class MutatingPolicy : public AdmissionPolicy {
 public:
  static constexpr std::string_view kPlural = "mutatingadmissionpolicies";
  static constexpr std::string_view kBindingsPlural = "mutatingadmissionpolicybindings";

  explicit MutatingPolicy(api::ObjectPtr policy);

  bool is_reinvocable() const { return is_reinvocable_; }
  std::size_t mutation_count() const { return mutations_.size(); }

  struct Change {
    api::TreePtr object;  // null: unchanged
    std::string error;
  };
  // Applies a mutation to `object`, which has the version of `kind`; input.object shows the same
  // object.
  Change Mutate(std::size_t mutation, const Input& input, api::Value object,
                const api::KindSchema& kind) const;

 private:
  struct Mutation {
    bool is_patch = false;  // JSONPatch; otherwise an ApplyConfiguration
    PolicyExpression expression;
  };

  bool is_reinvocable_ = false;
  std::vector<Mutation> mutations_;
};

}  // namespace drakkar::apiserver
