#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// Kinds without rules of their own but those of their description.
class GenericStrategy final : public Strategy {};

// Nodes register themselves together with their status.
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
  bool TakesStatusOnCreate() const override { return true; }
};

// A controller empties a namespace before it is removed; the finalizer in its spec stands for that.
class NamespaceStrategy final : public Strategy {
 public:
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  bool HoldsDeletion(api::Value object) const override;
  std::string_view WhyKept(std::string_view name) const override;
};

// node.status.declaredFeatures: format, order, uniqueness (KEP-5328).
api::FieldErrors ValidateDeclaredFeatures(api::Value features);

}  // namespace drakkar::apiserver
