#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// For kinds that have no rules beyond those in schema/.
class GenericStrategy final : public Strategy {};

// Kinds without rules of their own whose status updates leave the metadata alone.
class FixedMetadataStrategy final : public Strategy {
 public:
  bool StatusUpdateKeepsMetadata() const override { return false; }
};

// Nodes register themselves together with their status.
class NodeStrategy final : public Strategy {
 public:
  void Default(api::Draft& object, const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  bool TakesStatusOnCreate() const override { return true; }
};

// A controller deletes a namespace's contents before the namespace itself is removed. Until then
// its finalizer in the spec keeps it.
class NamespaceStrategy final : public Strategy {
 public:
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  bool HoldsDeletion(api::Value object) const override;
  std::string_view WhyKept(std::string_view name) const override;
};

// node.status.declaredFeatures: format, order, uniqueness (KEP-5328).
api::FieldErrors ValidateDeclaredFeatures(api::Value features);

}  // namespace drakkar::apiserver
