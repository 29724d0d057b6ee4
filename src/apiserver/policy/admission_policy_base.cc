#include "apiserver/policy/admission_policy_base.h"

#include "apiserver/policy/match_conditions.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// Maximum depth of variables that depend on each other, so that the stack cannot overflow.
constexpr int kMaxNestedVariables = 32;

constexpr std::string_view kOutOfBudget =
    "validation failed due to running out of cost budget, no further validation rules will be run";

AdmissionMatch ConstraintsOf(api::Value match) {
  return AdmissionMatch(match, match["resourceRules"], match["excludeResourceRules"]);
}

}  // namespace

AdmissionPolicy::AdmissionPolicy(api::ObjectPtr policy)
    : object_(std::move(policy)),
      has_params_(Param().has_value()),
      match_(ConstraintsOf(spec()["matchConstraints"])),
      ignores_errors_(spec()["failurePolicy"].str("Fail") == "Ignore") {}

void AdmissionPolicy::CompileShared(PolicyCompiler& compiler) {
  for (api::Value each : spec()["matchConditions"].elements()) {
    conditions_.push_back({std::string(each["name"].str()),
                           compiler.CompileCondition(Trim(each["expression"].str()))});
  }
  for (api::Value each : spec()["variables"].elements()) {
    variables_.push_back({std::string(each["name"].str()),
                          compiler.CompileVariable(each["name"].str(), each["expression"].str())});
  }
}

class PolicyEvaluation::VariablesMap final : public cel::MapValue {
 public:
  explicit VariablesMap(PolicyEvaluation& owner) : owner_(owner) {}
  bool Find(const cel::Value& key, std::uint32_t, cel::Value* out) const override {
    const std::size_t place = PlaceOf(key);
    if (place == owner_.values_.size()) return false;
    *out = owner_.VariableAt(place);
    return true;
  }
  bool Contains(const cel::Value& key, std::uint32_t) const override {
    return PlaceOf(key) != owner_.values_.size();
  }
  cel::Value KeyAt(std::uint32_t index) const override {
    return cel::MakeString(owner_.policy_.variables_[index].name);
  }
  cel::Value ValueAt(std::uint32_t index) const override { return owner_.VariableAt(index); }

 private:
  // If a name is defined twice, the last definition counts.
  std::size_t PlaceOf(const cel::Value& key) const {
    const auto& variables = owner_.policy_.variables_;
    for (std::size_t i = variables.size(); i > 0; --i) {
      if (key.kind == cel::Kind::kString && variables[i - 1].name == key.text()) return i - 1;
    }
    return variables.size();
  }
  PolicyEvaluation& owner_;
};

PolicyEvaluation::PolicyEvaluation(const AdmissionPolicy& policy,
                                   const AdmissionPolicy::Input& input)
    : policy_(policy),
      input_(input),
      values_(policy.variables_.size()),
      variables_(std::make_unique<VariablesMap>(*this)) {}

PolicyEvaluation::Outcome PolicyEvaluation::Run(const PolicyExpression& expression,
                                                bool is_condition, bool authorizer,
                                                std::uint64_t& budget) {
  if (expression.compiled == nullptr) {
    return {.error = StrCat("compilation error: ", expression.error)};
  }
  const std::vector<cel::Value> bound = Bind(is_condition, authorizer);
  variable_cost_ = 0;
  const cel::Evaluation result = Evaluate(*expression.compiled, evaluator_, bound);
  const std::uint64_t cost = result.cost + variable_cost_;
  if (cost > budget) return {.error = std::string(kOutOfBudget), .out_of_budget = true};
  budget -= cost;
  if (result.value.IsError()) {
    return {.error = StrCat("expression '", expression.source,
                            "' resulted in error: ", result.value.error->message)};
  }
  return {.value = result.value};
}

bool PolicyEvaluation::Matches(std::string& error) {
  std::uint64_t budget = kMaxConditionsCost;
  std::vector<std::string> errors;
  for (const AdmissionPolicy::Named& condition : policy_.conditions_) {
    Outcome outcome = Run(condition.expression, true, true, budget);
    if (outcome.out_of_budget) {
      error = std::move(outcome.error);
      return false;
    }
    if (!outcome.error.empty()) {
      errors.push_back(std::move(outcome.error));
    } else if (outcome.value.IsFalse()) {
      return false;  // whatever the others say
    }
  }
  if (errors.empty()) return true;
  error = errors.size() == 1 ? errors[0] : StrCat("[", Join(errors, ", "), "]");
  return false;
}

cel::Value PolicyEvaluation::VariableAt(std::size_t index) {
  Evaluated& slot = values_[index];
  if (slot.evaluator != nullptr) return slot.value;
  const AdmissionPolicy::Named& variable = policy_.variables_[index];
  if (nested_variables_ >= kMaxNestedVariables) {
    return cel::NewError(
        arena_, StrCat("more than ", kMaxNestedVariables, " variables depend on each other"));
  }
  if (variable.expression.compiled == nullptr) {
    return cel::NewError(arena_, StrCat("composited variable ", Quote(variable.name),
                                        " fails to compile: ", variable.expression.error));
  }
  auto evaluator = std::make_unique<cel::Evaluator>();
  ++nested_variables_;
  const std::vector<cel::Value> bound = Bind(false, true);
  const cel::Evaluation result = Evaluate(*variable.expression.compiled, *evaluator, bound);
  --nested_variables_;
  variable_cost_ += result.cost;
  slot.evaluator = std::move(evaluator);
  slot.value =
      result.value.IsError()
          ? cel::NewError(arena_, StrCat("composited variable ", Quote(variable.name),
                                         " fails to evaluate: ", result.value.error->message))
          : result.value;
  return slot.value;
}

cel::Evaluation PolicyEvaluation::Evaluate(const cel::Compiled& compiled, cel::Evaluator& evaluator,
                                           const std::vector<cel::Value>& bound) {
  const std::size_t asked = input_.asked == nullptr ? 0 : input_.asked->asked();
  const cel::Evaluation result = compiled.program->Evaluate(evaluator, bound, kMaxExpressionCost);
  ChargeEvaluation(result.cost, input_.asked == nullptr ? 0 : input_.asked->asked() - asked);
  return result;
}

std::vector<cel::Value> PolicyEvaluation::Bind(bool is_condition, bool authorizer) {
  std::vector<cel::Value> bound = {input_.object, input_.old_object, input_.namespace_object,
                                   input_.request};
  if (!is_condition && !policy_.variables_.empty()) {
    bound.push_back(
        cel::MakeMap(variables_.get(), static_cast<std::uint32_t>(policy_.variables_.size())));
  }
  if (policy_.has_params_) bound.push_back(input_.params);
  if (authorizer) {
    bound.push_back(input_.authorizer);
    bound.push_back(input_.request_resource);
  }
  return bound;
}

}  // namespace drakkar::apiserver
