#pragma once

#include <cstdint>
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

// The compiled parts that validating and mutating policies share. Immutable.
class AdmissionPolicy {
 public:
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

 protected:
  struct Named {
    std::string name;
    PolicyExpression expression;
  };

  explicit AdmissionPolicy(api::ObjectPtr policy);
  ~AdmissionPolicy() = default;
  api::Value spec() const { return object_->root()["spec"]; }
  api::Value Param() const { return spec()["paramKind"]; }
  // Conditions and variables.
  void CompileShared(PolicyCompiler& compiler);

  friend class PolicyEvaluation;
  const api::ObjectPtr object_;
  const bool has_params_;
  const AdmissionMatch match_;
  const bool ignores_errors_;
  std::vector<Named> conditions_;
  std::vector<Named> variables_;
};

// The evaluation of one policy for one input. Variables are evaluated when they are first used.
class PolicyEvaluation {
 public:
  PolicyEvaluation(const AdmissionPolicy& policy, const AdmissionPolicy::Input& input);

  struct Outcome {
    cel::Value value = {};  // lives as long as the evaluation, until the next Run
    std::string error = {};
    bool out_of_budget = false;
  };
  // Takes the cost from `budget`.
  Outcome Run(const PolicyExpression& expression, bool is_condition, bool authorizer,
              std::uint64_t& budget);
  // Whether all conditions hold. An error means that none is false and one cannot be evaluated.
  bool Matches(std::string& error);

 private:
  struct Evaluated {
    std::unique_ptr<cel::Evaluator> evaluator;  // owns the value
    cel::Value value;
  };
  class VariablesMap;

  cel::Value VariableAt(std::size_t index);
  cel::Evaluation Evaluate(const cel::Compiled& compiled, cel::Evaluator& evaluator,
                           const std::vector<cel::Value>& bound);
  // In the order of PolicyVariable.
  std::vector<cel::Value> Bind(bool is_condition, bool authorizer);

  const AdmissionPolicy& policy_;
  const AdmissionPolicy::Input& input_;
  cel::Arena arena_;
  cel::Evaluator evaluator_;
  std::vector<Evaluated> values_;  // of the variables
  std::unique_ptr<cel::MapValue> variables_;
  std::uint64_t variable_cost_ = 0;  // of those that the current expression used first
  int nested_variables_ = 0;
};

}  // namespace drakkar::apiserver
