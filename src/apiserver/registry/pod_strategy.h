#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// Pods: Kubernetes' defaults, the phase and QoS class at creation, which parts of the spec may
// change, graceful deletion.
class PodStrategy final : public Strategy {
 public:
  void Default(api::Draft& object, const StrategyContext& context) const override;
  void DefaultStatus(api::Draft&, const StrategyContext&) const override {}
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  bool ReturnsDeletedObject(std::string_view) const override { return true; }
  std::optional<std::int64_t> GracePeriod(api::Value object,
                                          std::optional<std::int64_t> asked) const override;
};

}  // namespace drakkar::apiserver
