#pragma once

#include <string>
#include <vector>

#include "apiserver/policy/authorizer_library.h"
#include "apiserver/policy/expressions.h"

namespace drakkar::apiserver {

// The matchConditions of a webhook or policy, compiled. Immutable.
class MatchConditions {
 public:
  MatchConditions() = default;  // none: everything matches
  explicit MatchConditions(api::Value conditions, bool has_params = false);

  bool empty() const { return conditions_.empty(); }

  struct Outcome {
    bool matches = true;
    std::string error;  // not empty: nothing is false, and something cannot be evaluated
  };
  // `variables` are bound in the order of PolicyVariable.
  Outcome Evaluate(const std::vector<cel::Value>& variables, const PolicyAuthorizer* asked) const;

 private:
  std::vector<PolicyExpression> conditions_;
};

// What evaluating an expression costs, in steps of the work budget; `questions` were asked of the
// authorizer meanwhile.
void ChargeEvaluation(std::uint64_t cost, std::size_t questions);

}  // namespace drakkar::apiserver
