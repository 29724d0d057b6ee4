#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// A group of pods that belong together: with one policy, and claims that its pods share.
class PodGroupStrategy final : public Strategy {
 public:
  void Default(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  bool AllowsUnconditionalUpdate(std::string_view) const override { return false; }
};

// Templates of such groups.
class WorkloadStrategy final : public Strategy {
 public:
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  bool AllowsUnconditionalUpdate(std::string_view) const override { return false; }
};

}  // namespace drakkar::apiserver
