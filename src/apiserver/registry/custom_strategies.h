#pragma once

#include "api/scheme/scheme.h"
#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

inline constexpr std::string_view kExtensionsGroup = "apiextensions.k8s.io";
inline constexpr std::string_view kDefinitionsPlural = "customresourcedefinitions";
// Holds up the deletion of a definition until its objects are gone.
inline constexpr std::string_view kCleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

// CustomResourceDefinitions. Names are accepted, and the kinds established, in the write itself.
class DefinitionStrategy final : public Strategy {
 public:
  void Default(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  std::vector<std::string> Warnings(api::Value object,
                                    const StrategyContext& context) const override;
};

// Custom resources: the rules of their schema, in the version of the request.
class CustomStrategy final : public Strategy {
 public:
  explicit CustomStrategy(const api::KindFamily& family) : family_(family) {}

  void Default(api::Draft& object, const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  std::vector<std::string> Warnings(api::Value object,
                                    const StrategyContext& context) const override;
  bool AllowsUnconditionalUpdate(std::string_view) const override { return false; }
  bool StatusUpdateKeepsMetadata() const override { return false; }

 private:
  const api::KindFamily& family_;
};

// Whether the API server serves the kinds of a definition.
bool IsEstablished(api::Value definition);

}  // namespace drakkar::apiserver
