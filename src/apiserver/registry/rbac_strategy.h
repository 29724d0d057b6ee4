#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// Roles and bindings. Their names are path segments: anything but "/" and "%", ".", "..".
class RbacStrategy final : public Strategy {
 public:
  void Default(api::Draft& object, const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  api::Problems CheckName(const api::KindSchema& kind, std::string_view name,
                          bool prefix) const override;
};

}  // namespace drakkar::apiserver
