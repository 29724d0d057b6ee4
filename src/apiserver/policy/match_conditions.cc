#include "apiserver/policy/match_conditions.h"

#include <algorithm>

#include "apiserver/policy/admission_policy_base.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::uint64_t kCheckCost = 350'000;  // of a question to the authorizer
// A unit of cost and a question to the authorizer, in steps of the work budget.
constexpr std::uint64_t kStepsPerCost = 10;
constexpr std::uint64_t kStepsPerQuestion = 5'000;

}  // namespace

void ChargeEvaluation(std::uint64_t cost, std::size_t questions) {
  // Each question has a nominal cost that is far above the real one.
  const std::uint64_t nominal = questions * kCheckCost;
  WorkBudget::Charge((cost - std::min(cost, nominal)) * kStepsPerCost +
                     questions * kStepsPerQuestion);
}

MatchConditions::MatchConditions(api::Value conditions, bool has_params) {
  if (conditions.empty()) return;
  const WorkBudget unlimited(WorkBudget::kUnlimited);  // compiled once, on first use
  const PolicyCompiler compiler(has_params, false);
  for (api::Value each : conditions.elements()) {
    conditions_.push_back(compiler.CompileCondition(Trim(each["expression"].str())));
  }
}

MatchConditions::Outcome MatchConditions::Evaluate(const std::vector<cel::Value>& variables,
                                                   const PolicyAuthorizer* asked) const {
  std::uint64_t budget = kMaxConditionsCost;
  std::vector<std::string> errors;
  for (const PolicyExpression& condition : conditions_) {
    if (condition.compiled == nullptr) {
      errors.push_back(StrCat("compilation error: ", condition.error));
      continue;
    }
    cel::Evaluator evaluator;
    const std::size_t before = asked == nullptr ? 0 : asked->asked();
    const cel::Evaluation result =
        condition.compiled->program->Evaluate(evaluator, variables, kMaxExpressionCost);
    ChargeEvaluation(result.cost, asked == nullptr ? 0 : asked->asked() - before);
    if (result.cost > budget) {
      return {.matches = true,
              .error =
                  "validation failed due to running out of cost budget, no further validation "
                  "rules will be run"};
    }
    budget -= result.cost;
    if (result.value.IsError()) {
      errors.push_back(StrCat("expression '", condition.source,
                              "' resulted in error: ", result.value.error->message));
    } else if (result.value.IsFalse()) {
      return {.matches = false, .error = {}};  // whatever the others say
    }
  }
  if (errors.empty()) return {};
  return {.matches = true,
          .error = errors.size() == 1 ? errors[0] : StrCat("[", Join(errors, ", "), "]")};
}

}  // namespace drakkar::apiserver
