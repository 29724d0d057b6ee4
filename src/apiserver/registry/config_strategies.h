#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// The limit for all values of a Secret or ConfigMap together.
inline constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

// Secrets: stringData is merged into data; the type is immutable, and with `immutable` so is the
// data.
class SecretStrategy final : public Strategy {
 public:
  void Default(api::Draft& object, const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
};

class ConfigMapStrategy final : public Strategy {
 public:
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
};

}  // namespace drakkar::apiserver
