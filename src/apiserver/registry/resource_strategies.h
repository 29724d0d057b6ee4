#pragma once

#include "apiserver/registry/strategy.h"

// The kinds of resource.k8s.io: defaults, what a gate that is off does to a field, generation,
// status against spec, permissions that depend on the change. The rules themselves are in
// validation/.
namespace drakkar::apiserver {

// What all of them share.
class ResourceStrategy : public Strategy {
 public:
  void Default(api::Draft& object, const StrategyContext& context) const override;
  bool ReturnsDeletedObject(std::string_view) const override { return true; }
};

class DeviceClassStrategy final : public ResourceStrategy {
 public:
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  bool NameIsDeclared() const override { return true; }
  bool MaintainsGeneration() const override { return true; }
};

class ResourceClaimStrategy final : public ResourceStrategy {
 public:
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
};

class ResourceClaimTemplateStrategy final : public ResourceStrategy {
 public:
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
};

class ResourceSliceStrategy final : public ResourceStrategy {
 public:
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  std::vector<std::string> Warnings(api::Value object,
                                    const StrategyContext& context) const override;
  bool MaintainsGeneration() const override { return true; }
};

class DeviceTaintRuleStrategy final : public ResourceStrategy {
 public:
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  bool MaintainsGeneration() const override { return true; }
  // v1 was made after these two habits were given up.
  bool AllowsUnconditionalUpdate(std::string_view version) const override { return version != "v1"; }
  bool ReturnsDeletedObject(std::string_view version) const override { return version != "v1"; }
};

class PoolStatusRequestStrategy final : public ResourceStrategy {
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
