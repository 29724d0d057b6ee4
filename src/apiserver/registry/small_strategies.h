#pragma once

#include "apiserver/registry/strategy.h"

// Kinds that are kept as they come, but for a rule or two.
namespace drakkar::apiserver {

// Classes of users end at a thousand million; what is above is the system's, whose classes stay.
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

// Events of both groups; those with an eventTime are the newer kind, which says who acts and how.
class EventStrategy final : public Strategy {
 public:
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
};

// What the taints of a node must be.
api::FieldErrors ValidateTaints(api::Value taints);

}  // namespace drakkar::apiserver
