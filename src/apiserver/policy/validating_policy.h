#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "apiserver/policy/authorizer_library.h"
#include "apiserver/policy/expressions.h"
#include "apiserver/policy/match.h"

namespace drakkar::apiserver {

// Kubernetes' limits: for one expression, and for the expressions of one binding together.
inline constexpr std::uint64_t kMaxExpressionCost = 1'000'000;
inline constexpr std::uint64_t kMaxPolicyCost = 10'000'000;
inline constexpr std::uint64_t kMaxConditionsCost = 2'500'000;

// A ValidatingAdmissionPolicy with its expressions compiled. Immutable.
class ValidatingPolicy {
 public:
  explicit ValidatingPolicy(api::ObjectPtr policy);

  std::string_view name() const { return object_->name(); }
  const AdmissionMatch& match() const { return match_; }
  bool ignores_errors() const { return ignores_errors_; }
  // Empty if the policy takes no parameters.
  std::string_view param_api_version() const { return Param()["apiVersion"].str(); }
  std::string_view param_kind() const { return Param()["kind"].str(); }

  // The variables that all expressions of an evaluation see.
  struct Input {
    cel::Value object;
    cel::Value old_object;
    cel::Value namespace_object;
    cel::Value request;
    cel::Value params;
    cel::Value authorizer;
    cel::Value request_resource;
    PolicyAuthorizer* asked = nullptr;
  };
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
  friend class PolicyEvaluation;
  struct Variable {
    std::string name;
    PolicyExpression expression;
  };
  struct Validation {
    PolicyExpression expression;
    std::optional<PolicyExpression> message_expression;
    std::string message;
    std::string reason;
  };
  struct Named {
    std::string name;
    PolicyExpression expression;
  };

  api::Value Param() const { return object_->root()["spec"]["paramKind"]; }

  const api::ObjectPtr object_;
  const bool has_params_;
  AdmissionMatch match_;
  bool ignores_errors_ = false;
  std::vector<Named> conditions_;
  std::vector<Variable> variables_;
  std::vector<Validation> validations_;
  std::vector<Named> annotations_;
};

}  // namespace drakkar::apiserver
