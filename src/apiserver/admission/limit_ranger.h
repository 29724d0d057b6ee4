#pragma once

#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Gives the containers of new pods the default requests and limits of the namespace's LimitRanges.
class LimitRangerDefaults final : public AdmissionStep {
 public:
  std::string_view name() const override { return "LimitRanger"; }
  bool Concerns(const Request& request) const override;
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
};

// Rejects pods, resizes and volume claims beyond the limits of the namespace's LimitRanges.
class LimitRanger final : public AdmissionStep {
 public:
  std::string_view name() const override { return "LimitRanger"; }
  bool comes_after_validation() const override { return true; }
  bool Concerns(const Request& request) const override;
  std::optional<Failure> Check(const Request& request, api::Value object, api::Value before,
                               const StrategyContext& context,
                               std::vector<std::string>& warnings) override;
};

}  // namespace drakkar::apiserver
