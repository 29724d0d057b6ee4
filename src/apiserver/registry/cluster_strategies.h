#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// Kinds that are only kept: the status is the controllers' business, so creation starts without.
class GenericStrategy final : public Strategy {
 public:
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
};

// Nodes register themselves with their status in one go.
class NodeStrategy final : public Strategy {
 public:
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  bool StatusUpdateKeepsMetadata() const override { return true; }
};

// A namespace is emptied by its controller before it goes: the finalizer in its spec says so.
class NamespaceStrategy final : public Strategy {
 public:
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  api::Problems CheckName(std::string_view name, bool prefix) const override;
  bool HoldsDeletion(api::Value object) const override;
  std::string_view WhyKept(std::string_view name) const override;
};

// node.status.declaredFeatures: format, order, uniqueness (KEP-5328).
api::FieldErrors ValidateDeclaredFeatures(api::Value features);

}  // namespace drakkar::apiserver
