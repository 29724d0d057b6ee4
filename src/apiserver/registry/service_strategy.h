#pragma once

#include <set>
#include <string>

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// Services get a free cluster IP of kClusterNetwork and, if their type demands it, free node ports
// of kFirstNodePort to kLastNodePort. "Free" is decided by the Services that the server knows; on a
// shared store, what only one Service may have is written together with it (HeldBy).
class ServiceStrategy final : public Strategy {
 public:
  static constexpr std::string_view kClusterNetwork = "10.96.0.0/12";
  static constexpr int kFirstNodePort = 30'000;
  static constexpr int kLastNodePort = 32'767;

  void Default(api::Draft& object, const StrategyContext& context) const override;
  void DefaultStatus(api::Draft&, const StrategyContext&) const override {}
  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  // A DNS label, which may begin with a digit.
  api::Problems CheckName(const api::KindSchema& kind, std::string_view name,
                          bool prefix) const override;
  // Names of what only one Service may have: its cluster IPs and node ports. A `service` that does
  // not exist has none.
  static std::set<std::string> HeldBy(api::Value service);
};

}  // namespace drakkar::apiserver
