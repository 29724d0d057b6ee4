#include "device/cel_expressions.h"

#include <utility>

#include "base/text/text.h"

namespace drakkar::device {
namespace {

DeviceInput InputOf(std::string_view driver, const Device& device) {
  DeviceInput input;
  input.driver = driver;
  input.allow_multiple_allocations = device.allow_multiple_allocations;
  for (const Attribute& attribute : device.attributes) {
    input.attributes.emplace_back(attribute.name, attribute.value);
  }
  for (const Capacity& capacity : device.capacity) {
    input.capacity.emplace_back(capacity.name, capacity.value);
  }
  return input;
}

class CelExpression final : public Expression {
 public:
  CelExpression(DeviceCompiler::Outcome outcome, std::shared_ptr<cel::Evaluator> evaluator)
      : expression_(std::move(outcome.expression)), evaluator_(std::move(evaluator)) {
    if (expression_ == nullptr) {
      compile_error_ = std::move(outcome.failure.message);
      return;
    }
    const ReadSet& reads = expression_->read_set();
    reads_.everything = reads.all || !reads.attribute_domains.empty();
    for (const ReadSet::Key& key : reads.attributes) {
      reads_.attributes.push_back(StrCat(key.domain, "/", key.name));
    }
  }

  Result<bool> Matches(std::string_view driver, const Device& device) const override {
    ASSIGN_OR_RETURN(const std::unique_ptr<const CelDevice> converted,
                     CelDevice::Create(InputOf(driver, device)));
    DeviceExpression::Answer answer = expression_->Matches(*converted, *evaluator_);
    if (answer.error) return InvalidArgument(*std::move(answer.error));
    return answer.matches;
  }

  Result<AttributeValue> Derive(std::string_view driver, const Device& device) const override {
    ASSIGN_OR_RETURN(const std::unique_ptr<const CelDevice> converted,
                     CelDevice::Create(InputOf(driver, device)));
    DeviceExpression::Derived derived = expression_->Derive(*converted, *evaluator_);
    if (derived.error) return InvalidArgument(*std::move(derived.error));
    return std::move(derived.value);
  }

 private:
  std::unique_ptr<const DeviceExpression> expression_;
  std::shared_ptr<cel::Evaluator> evaluator_;
};

}  // namespace

CelExpressions::CelExpressions()
    : compiler_(CelFeatures{.consumable_capacity = true, .list_type_attributes = true}),
      evaluator_(std::make_shared<cel::Evaluator>()) {}

CelExpressions::~CelExpressions() = default;

std::shared_ptr<const Expression> CelExpressions::CompileSelector(std::string_view text) {
  return std::make_shared<CelExpression>(compiler_.CompileSelector(text, ExpressionSet::kStored),
                                         evaluator_);
}

std::shared_ptr<const Expression> CelExpressions::CompileDerived(std::string_view text) {
  return std::make_shared<CelExpression>(
      compiler_.CompileDerivedAttribute(text, ExpressionSet::kStored), evaluator_);
}

}  // namespace drakkar::device
