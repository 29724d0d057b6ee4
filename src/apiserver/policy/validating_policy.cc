#include "apiserver/policy/validating_policy.h"

#include <algorithm>
#include <memory>

#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::uint64_t kCheckCost = 350'000;  // of a question to the authorizer
// A unit of cost and a question to the authorizer, in steps of the work budget.
constexpr std::uint64_t kStepsPerCost = 10;
constexpr std::uint64_t kStepsPerQuestion = 5'000;
constexpr std::size_t kMaxMessageBytes = std::size_t{5} * 1024;
constexpr std::size_t kMaxAnnotationBytes = std::size_t{10} * 1024;
// How many variables may wait for each other, so that the stack cannot overflow.
constexpr int kMaxNestedVariables = 32;

constexpr std::string_view kOutOfBudget =
    "validation failed due to running out of cost budget, no further validation rules will be run";

}  // namespace

// The evaluation of one policy for one input. Variables are evaluated when they are first used.
class PolicyEvaluation {
 public:
  PolicyEvaluation(const ValidatingPolicy& policy, const ValidatingPolicy::Input& input)
      : policy_(policy), input_(input), variables_(*this) {
    variables_.values.resize(policy.variables_.size());
  }

  struct Outcome {
    cel::Value value;
    std::string error;
    bool out_of_budget = false;
  };
  // Takes the cost from `budget`.
  Outcome Run(const PolicyExpression& expression, bool is_condition, bool authorizer,
              std::uint64_t& budget) {
    if (expression.compiled == nullptr) {
      return {.value = {}, .error = StrCat("compilation error: ", expression.error)};
    }
    const std::vector<cel::Value> bound = Bind(is_condition, authorizer);
    variable_cost_ = 0;
    const cel::Evaluation result = Evaluate(*expression.compiled, evaluator_, bound);
    const std::uint64_t cost = result.cost + variable_cost_;
    if (cost > budget) {
      return {.value = {}, .error = std::string(kOutOfBudget), .out_of_budget = true};
    }
    budget -= cost;
    if (result.value.IsError()) {
      return {.value = {},
              .error = StrCat("expression '", expression.source,
                              "' resulted in error: ", result.value.error->message)};
    }
    return {.value = result.value};
  }

 private:
  struct Evaluated {
    std::unique_ptr<cel::Evaluator> evaluator;  // owns the value
    cel::Value value;
  };

  class VariablesMap final : public cel::MapValue {
   public:
    explicit VariablesMap(PolicyEvaluation& owner) : owner_(owner) {}
    bool Find(const cel::Value& key, std::uint32_t, cel::Value* out) const override {
      const std::size_t place = PlaceOf(key);
      if (place == values.size()) return false;
      *out = owner_.VariableAt(place);
      return true;
    }
    bool Contains(const cel::Value& key, std::uint32_t) const override {
      return PlaceOf(key) != values.size();
    }
    cel::Value KeyAt(std::uint32_t index) const override {
      return cel::MakeString(owner_.policy_.variables_[index].name);
    }
    cel::Value ValueAt(std::uint32_t index) const override { return owner_.VariableAt(index); }

    mutable std::vector<Evaluated> values;

   private:
    // The last one of the name counts.
    std::size_t PlaceOf(const cel::Value& key) const {
      const auto& variables = owner_.policy_.variables_;
      for (std::size_t i = variables.size(); i > 0; --i) {
        if (key.kind == cel::Kind::kString && variables[i - 1].name == key.text()) return i - 1;
      }
      return variables.size();
    }
    PolicyEvaluation& owner_;
  };

  cel::Value VariableAt(std::size_t index) {
    Evaluated& slot = variables_.values[index];
    if (slot.evaluator != nullptr) return slot.value;
    const ValidatingPolicy::Variable& variable = policy_.variables_[index];
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

  cel::Evaluation Evaluate(const cel::Compiled& compiled, cel::Evaluator& evaluator,
                           const std::vector<cel::Value>& bound) {
    const std::size_t asked = input_.asked == nullptr ? 0 : input_.asked->asked();
    const cel::Evaluation result = compiled.program->Evaluate(evaluator, bound, kMaxExpressionCost);
    const std::uint64_t questions = input_.asked == nullptr ? 0 : input_.asked->asked() - asked;
    const std::uint64_t nominal = questions * kCheckCost;
    WorkBudget::Charge((result.cost - std::min(result.cost, nominal)) * kStepsPerCost +
                       questions * kStepsPerQuestion);
    return result;
  }

  // In the order of PolicyVariable.
  std::vector<cel::Value> Bind(bool is_condition, bool authorizer) {
    std::vector<cel::Value> bound = {input_.object, input_.old_object, input_.namespace_object,
                                     input_.request};
    if (!is_condition && !policy_.variables_.empty()) {
      bound.push_back(
          cel::MakeMap(&variables_, static_cast<std::uint32_t>(policy_.variables_.size())));
    }
    if (policy_.has_params_) bound.push_back(input_.params);
    if (authorizer) {
      bound.push_back(input_.authorizer);
      bound.push_back(input_.request_resource);
    }
    return bound;
  }

  const ValidatingPolicy& policy_;
  const ValidatingPolicy::Input& input_;
  cel::Arena arena_;
  cel::Evaluator evaluator_;
  VariablesMap variables_;
  std::uint64_t variable_cost_ = 0;  // of those that the current expression used first
  int nested_variables_ = 0;
};

ValidatingPolicy::ValidatingPolicy(api::ObjectPtr policy)
    : object_(std::move(policy)), has_params_(Param().has_value()) {
  // A stored policy is compiled once, whoever asks first.
  const WorkBudget unlimited(WorkBudget::kUnlimited);
  const api::Value spec = object_->root()["spec"];
  const api::Value constraints = spec["matchConstraints"];
  match_ = AdmissionMatch(constraints, constraints["resourceRules"],
                          constraints["excludeResourceRules"]);
  ignores_errors_ = spec["failurePolicy"].str("Fail") == "Ignore";
  PolicyCompiler compiler(has_params_, !spec["variables"].empty());
  for (api::Value each : spec["matchConditions"].elements()) {
    conditions_.push_back({std::string(each["name"].str()),
                           compiler.CompileCondition(Trim(each["expression"].str()))});
  }
  for (api::Value each : spec["variables"].elements()) {
    variables_.push_back({std::string(each["name"].str()),
                          compiler.CompileVariable(each["name"].str(), each["expression"].str())});
  }
  for (api::Value each : spec["validations"].elements()) {
    Validation& validation = validations_.emplace_back();
    validation.expression = compiler.Compile(each["expression"].str(), Returns::kBool);
    validation.message = std::string(Trim(each["message"].str()));
    validation.reason = each["reason"].str("Invalid");
    if (const std::string_view source = each["messageExpression"].str(); !source.empty()) {
      validation.message_expression = compiler.Compile(source, Returns::kText, false);
    }
  }
  for (api::Value each : spec["auditAnnotations"].elements()) {
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

  std::uint64_t budget = kMaxConditionsCost;
  std::vector<std::string> errors;
  for (const Named& condition : conditions_) {
    PolicyEvaluation::Outcome outcome = evaluation.Run(condition.expression, true, true, budget);
    if (outcome.out_of_budget) {
      fail(0, std::move(outcome.error));
      return result;
    }
    if (!outcome.error.empty()) {
      errors.push_back(std::move(outcome.error));
    } else if (outcome.value.IsFalse()) {
      return result;  // whatever the others say
    }
  }
  if (!errors.empty()) {
    fail(0, errors.size() == 1 ? errors[0] : StrCat("[", Join(errors, ", "), "]"));
    return result;
  }

  budget = kMaxPolicyCost;
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
