#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// CertificateSigningRequests. The requester is recorded from the request's user, never from the
// object. The spec cannot change. Only `approval` adds Approved and Denied, which exclude each
// other, and only `status` sets the certificate, once. Decisions are final.
class CertificateSigningRequestStrategy final : public Strategy {
 public:
  static constexpr std::int64_t kMinExpirationSeconds = 600;

  void PrepareForCreate(api::Draft& object, const StrategyContext& context) const override;
  void PrepareForUpdate(api::Draft& object, api::Value before, std::string_view subresource,
                        const StrategyContext& context) const override;
  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  // Anything that fits into a path: a kubelet derives the name from a hash.
  api::Problems CheckName(const api::KindSchema& kind, std::string_view name,
                          bool prefix) const override;
};

}  // namespace drakkar::apiserver
