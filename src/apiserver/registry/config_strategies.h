#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// What a Secret or ConfigMap may hold in all: the values' bytes.
inline constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

// Keys become names of files in volumes and of environment variables.
api::Problems ConfigKeyProblems(std::string_view key);

// Secrets: stringData is only a way to write data; the type stays, and with `immutable` the data.
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
