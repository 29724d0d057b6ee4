#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// Trust anchors that pods can mount: certificates of authorities, each once. A bundle of a signer
// has the signer in its name ("example.com:foo:v1").
class ClusterTrustBundleStrategy final : public Strategy {
 public:
  static constexpr std::size_t kMaxBundleBytes = std::size_t{1} << 20;

  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  api::Problems CheckName(const api::KindSchema& kind, std::string_view name,
                          bool prefix) const override;
};

// A pod's request for a certificate of a signer. Its spec cannot change; its status can be decided
// once: issued, denied or failed.
class PodCertificateRequestStrategy final : public Strategy {
 public:
  static constexpr std::int64_t kMinExpiration = 3'600;
  static constexpr std::int64_t kMaxExpiration = 7'862'400;         // 91 days
  static constexpr std::int64_t kMaxKubernetesExpiration = 86'400;  // of signers of kubernetes.io
  static constexpr std::size_t kMaxRequestBytes = 10u << 10;
  static constexpr std::size_t kMaxChainBytes = 100u << 10;

  api::FieldErrors Validate(api::Value object, const StrategyContext& context) const override;
  api::FieldErrors ValidateUpdate(api::Value object, api::Value before,
                                  std::string_view subresource,
                                  const StrategyContext& context) const override;
  bool AllowsUnconditionalUpdate(std::string_view) const override { return false; }
};

}  // namespace drakkar::apiserver
