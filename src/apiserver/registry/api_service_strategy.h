#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// APIServices, named after their version and group: either local, and then available from the
// start, or delegated to a Service.
class ApiServiceStrategy final : public Strategy {
 public:
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  bool AllowsUnconditionalUpdate(std::string_view) const override { return false; }
  // "v1." is the name of the core group's.
  api::Problems CheckName(const api::KindSchema& kind, std::string_view name,
                          bool prefix) const override;
  bool StatusUpdateKeepsMetadata() const override { return false; }
};

}  // namespace drakkar::apiserver
