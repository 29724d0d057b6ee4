#pragma once

#include "apiserver/registry/strategy.h"

// The kinds of resource.k8s.io: defaults, what a gate that is off does to a field, generation,
// status against spec. The rules themselves are in validation/.
namespace drakkar::apiserver {

class DeviceClassStrategy final : public Strategy {
 public:
  bool MaintainsGeneration() const override { return true; }
  bool ReturnsDeletedObject() const override { return true; }
};

class ResourceClaimStrategy final : public Strategy {
 public:
  void Default(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                    std::string_view subresource,
                                    const StrategyContext& context) const override;
  bool ReturnsDeletedObject() const override { return true; }
};

class ResourceClaimTemplateStrategy final : public Strategy {
 public:
  void Default(api::Draft& object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                    std::string_view subresource,
                                    const StrategyContext& context) const override;
  bool ReturnsDeletedObject() const override { return true; }
};

class ResourceSliceStrategy final : public Strategy {
 public:
  void Default(api::Draft& object, const StrategyContext& context) const override;
  std::vector<std::string> Warnings(api::Value object,
                                    const StrategyContext& context) const override;
  bool MaintainsGeneration() const override { return true; }
  bool ReturnsDeletedObject() const override { return true; }
};

class DeviceTaintRuleStrategy final : public Strategy {
 public:
  void Default(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  bool MaintainsGeneration() const override { return true; }
  bool ReturnsDeletedObject() const override { return true; }
};

}  // namespace drakkar::apiserver
