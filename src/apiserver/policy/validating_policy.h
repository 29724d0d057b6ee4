#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/policy/admission_policy_base.h"

namespace drakkar::apiserver {

// A ValidatingAdmissionPolicy with its expressions compiled. Immutable.
class ValidatingPolicy : public AdmissionPolicy {
 public:
  static constexpr std::string_view kPlural = "validatingadmissionpolicies";
  static constexpr std::string_view kBindingsPlural = "validatingadmissionpolicybindings";

  explicit ValidatingPolicy(api::ObjectPtr policy);

  struct Verdict {
    std::string message;
    std::string reason;  // of Status; empty for errors
    std::size_t index = 0;
  };
  struct Annotation {
    std::string_view key;
    std::string value;
  };
  struct Result {
    std::vector<Verdict> denials;
    std::vector<Annotation> annotations;
  };
  Result Evaluate(const Input& input) const;

 private:
  struct Validation {
    PolicyExpression expression;
    std::optional<PolicyExpression> message_expression;
    std::string message;
    std::string reason;
  };
  std::vector<Validation> validations_;
  std::vector<Named> annotations_;
};

}  // namespace drakkar::apiserver
