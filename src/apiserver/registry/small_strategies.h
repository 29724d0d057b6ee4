#pragma once

#include "apiserver/registry/strategy.h"

// Kinds with only one or two rules.
namespace drakkar::apiserver {

// User-defined classes are limited to 1,000,000,000. Higher values are for system classes, which
// cannot be changed.
class PriorityClassStrategy final : public Strategy {
 public:
  void Default(api::Draft& object, const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  std::string_view WhyKept(std::string_view name) const override;
};

class LeaseStrategy final : public Strategy {
 public:
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
};

class DisruptionBudgetStrategy final : public Strategy {
 public:
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
};

// A node agent's handler for pods; which one it is cannot change.
class RuntimeClassStrategy final : public Strategy {
 public:
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
};

// Events of both groups. Those with an eventTime are of the newer form, which requires a reporting
// controller and an action.
class EventStrategy final : public Strategy {
 public:
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
};

// Validates the taints of a node.
api::FieldErrors ValidateTaints(api::Value taints);

}  // namespace drakkar::apiserver
