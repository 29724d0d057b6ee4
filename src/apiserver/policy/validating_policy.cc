#include "apiserver/policy/validating_policy.h"

#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::size_t kMaxMessageBytes = std::size_t{5} * 1024;
constexpr std::size_t kMaxAnnotationBytes = std::size_t{10} * 1024;
}  // namespace

ValidatingPolicy::ValidatingPolicy(api::ObjectPtr policy) : AdmissionPolicy(std::move(policy)) {
  // A stored policy is compiled once, on first use.
  const WorkBudget unlimited(WorkBudget::kUnlimited);
  PolicyCompiler compiler(has_params_, !spec()["variables"].empty());
  CompileShared(compiler);
  for (api::Value each : spec()["validations"].elements()) {
    Validation& validation = validations_.emplace_back();
    validation.expression = compiler.Compile(each["expression"].str(), Returns::kBool);
    validation.message = std::string(Trim(each["message"].str()));
    validation.reason = each["reason"].str("Invalid");
    if (const std::string_view source = each["messageExpression"].str(); !source.empty()) {
      validation.message_expression = compiler.Compile(source, Returns::kText, false);
    }
  }
  for (api::Value each : spec()["auditAnnotations"].elements()) {
    annotations_.push_back(
        {std::string(each["key"].str()),
         compiler.Compile(Trim(each["valueExpression"].str()), Returns::kTextOrNull)});
  }
}

ValidatingPolicy::Result ValidatingPolicy::Evaluate(const Input& input) const {
  PolicyEvaluation evaluation(*this, input);
  Result result;
  const auto fail = [&](std::size_t index, std::string message) {
    if (!ignores_errors_) result.denials.push_back({std::move(message), "", index});
  };

  std::string error;
  const bool matches = evaluation.Matches(error);
  if (!error.empty()) fail(0, std::move(error));
  if (!matches) return result;

  std::uint64_t budget = kMaxPolicyCost;
  std::vector<PolicyEvaluation::Outcome> outcomes;
  for (const Validation& validation : validations_) {
    outcomes.push_back(evaluation.Run(validation.expression, false, true, budget));
    if (WorkBudget::IsExceeded()) return result;
    if (outcomes.back().out_of_budget) {
      fail(0, outcomes.back().error);
      return result;
    }
  }
  for (std::size_t i = 0; i < validations_.size(); ++i) {
    const Validation& validation = validations_[i];
    if (!outcomes[i].error.empty()) {
      fail(i, outcomes[i].error);
      continue;
    }
    if (outcomes[i].value.IsTrue()) continue;
    std::string message;
    if (validation.message_expression) {
      const PolicyEvaluation::Outcome text =
          evaluation.Run(*validation.message_expression, false, false, budget);
      if (text.out_of_budget) {
        fail(i, StrCat("failed messageExpression: ", text.error));
        continue;
      }
      if (text.error.empty() && text.value.kind == cel::Kind::kString) {
        message = std::string(Trim(text.value.text()));
        if (message.size() > kMaxMessageBytes || message.find('\n') != std::string::npos) {
          message.clear();
        }
      }
    }
    if (message.empty()) message = validation.message;
    if (message.empty()) {
      message = StrCat("failed expression: ", Trim(validation.expression.source));
    }
    result.denials.push_back({std::move(message), validation.reason, i});
  }

  budget = kMaxPolicyCost;
  for (const Named& annotation : annotations_) {
    const PolicyEvaluation::Outcome outcome =
        evaluation.Run(annotation.expression, false, true, budget);
    if (!outcome.error.empty()) {
      fail(0, outcome.error);
      if (outcome.out_of_budget) return result;
    } else if (outcome.value.kind == cel::Kind::kString) {
      if (std::string value(Trim(outcome.value.text())); !value.empty()) {
        if (value.size() > kMaxAnnotationBytes) value.resize(kMaxAnnotationBytes);
        result.annotations.push_back({annotation.name, std::move(value)});
      }
    }
  }
  return result;
}

}  // namespace drakkar::apiserver
