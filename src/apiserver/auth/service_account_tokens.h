#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/rest/answerer.h"
#include "apiserver/rest/core.h"
#include "base/env/clock.h"
#include "base/env/random.h"
#include "net/tls/jws.h"

namespace drakkar::apiserver {

// Who issues tokens, and whom they are for, as in kube-apiserver's --service-account-issuer and
// --api-audiences.
struct TokenNames {
  // The first one is in new tokens; tokens of all are accepted. Empty: kIssuer.
  std::vector<std::string> issuers = {};
  // Those that mean this API server; the first is in tokens that are asked for without one. Empty:
  // the first issuer.
  std::vector<std::string> audiences = {};
};

// Tokens of service accounts: JSON Web Tokens signed with ES256 or RS256, bound to an audience, a
// lifetime and an object. Issued by POST serviceaccounts/NAME/token. Every use checks the account
// and the object that the token is bound to, so deleting either revokes it. A node gets tokens only
// for pods bound to it, for the audiences and at most the lifetime that the volumes of those pods
// ask for.
class ServiceAccountTokens final : public Answerer {
 public:
  static constexpr std::string_view kIssuer = "https://kubernetes.default.svc.cluster.local";
  static constexpr std::int64_t kMinSeconds = 600;
  static constexpr std::int64_t kMaxSeconds = std::int64_t{1} << 32;
  static constexpr std::int64_t kDefaultSeconds = 3600;
  // For nodes, which renew tokens while the pod lives.
  static constexpr std::int64_t kMaxNodeSeconds = 24 * 3600;
  // How long a token outlives the deletion of the object it is bound to, on top of the grace
  // period, so that the pod can still report.
  static constexpr std::int64_t kDeletionLeeway = 60;

  // Signs with the private key. Accepts tokens that it or one of `other_keys` (PEM; public keys are
  // enough) has signed: former keys, and those of other API servers. At most kMaxKeys.
  static constexpr std::size_t kMaxKeys = 32;
  static Result<std::unique_ptr<ServiceAccountTokens>> Create(
      std::string_view private_key_pem, const Clock& clock, Random& random,
      const std::vector<std::string>& other_keys = {}, TokenNames names = {});

  // `core` must outlive this, or Detach must come first.
  void Attach(const Core& core) { core_ = &core; }
  void Detach() { core_ = nullptr; }

  const std::string& issuer() const { return names_.issuers.front(); }
  // Never empty.
  const std::vector<std::string>& audiences() const { return names_.audiences; }

  bool Answer(Request& request, Response& response) override;

  // The user of the token, if it is valid for one of `audiences` (none: the API server's own).
  // `meant_for` gets those it is valid for.
  std::optional<UserInfo> Verify(std::string_view token, const std::vector<std::string>& audiences,
                                 std::vector<std::string>& meant_for) const;

  // /openid/v1/jwks and /.well-known/openid-configuration, for others who verify tokens.
  std::string KeysJson() const;
  std::string ConfigurationJson() const;

 private:
  ServiceAccountTokens(const Clock& clock, Random& random, TokenNames names);
  std::optional<Failure> Issue(Request& request, Response& response);
  // Fails if a node may not request this token; otherwise limits `seconds` to what it may have.
  std::optional<Failure> CheckNode(const Request& request, std::string_view node,
                                   std::int64_t& seconds) const;
  // Whether the object exists, has the expected UID, and was not deleted long ago.
  bool Lives(std::string_view plural, const std::string& key, std::string_view uid) const;

  const Clock& clock_;
  Random& random_;
  TokenNames names_;
  struct Key {
    std::string id;
    std::unique_ptr<const net::JwsVerifier> verifier;
  };
  std::unique_ptr<const net::JwsSigner> signer_;
  std::vector<Key> keys_;  // that of the signer first
  const Core* core_ = nullptr;
};

}  // namespace drakkar::apiserver
