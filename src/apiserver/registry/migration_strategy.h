#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// Orders to write all objects of a resource again. The spec cannot be changed, and neither can the
// version in the status nor how the migration ended.
class StorageVersionMigrationStrategy final : public Strategy {
 public:
  bool AllowsUnconditionalUpdate(std::string_view) const override { return false; }
  bool StatusUpdateKeepsMetadata() const override { return false; }
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
};

}  // namespace drakkar::apiserver
