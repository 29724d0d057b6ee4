#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "apiserver/policy/match.h"
#include "apiserver/policy/match_conditions.h"
#include "apiserver/rest/core.h"
#include "apiserver/webhook/review.h"
#include "apiserver/webhook/transport.h"

namespace drakkar::apiserver {

// The target of a webhook's clientConfig. Immutable.
struct WebhookClient {
  explicit WebhookClient(api::Value client_config);

  std::string url;  // empty: the Service
  std::string service_namespace;
  std::string service_name;
  std::string path;
  std::int64_t port = 443;
  std::string ca_pem;
  std::string error;  // why it cannot be called

  // The address to connect to at the moment; `error` if there is none. The URL ends with `query`,
  // if given.
  struct Located {
    WebhookTarget target;
    std::string error;
  };
  Located Locate(const Core& core, Random& random, std::string_view query) const;
};

// One webhook of a configuration. Immutable, except that its conditions are compiled when a request
// first needs them.
struct Webhook {
  Webhook(api::ObjectPtr configuration, api::Value source, std::size_t index);

  const api::ObjectPtr configuration;  // keeps `source` alive
  const std::string name;
  const std::string id;  // unique among all webhooks
  const AdmissionMatch match;
  const WebhookClient client;
  const Duration timeout;
  const bool ignores_failures;
  const bool has_side_effects;  // dry runs that would call it are rejected
  const bool is_reinvocable;
  std::optional<ReviewVersion> version;  // empty: it accepts none that we know

  const MatchConditions& conditions() const;

 private:
  const api::Value source_;
  mutable std::unique_ptr<const MatchConditions> conditions_;
};
using WebhookPtr = std::shared_ptr<const Webhook>;

// The webhooks of one kind of configuration, sorted by the configuration's name. Each kind has an
// index of the webhooks whose rules name it, so that others cost one lookup, and nothing if there
// are none. Bound to the core's loop.
class WebhookSet {
 public:
  explicit WebhookSet(std::string_view plural) : plural_(plural) {}

  void Attach(const Core& core);
  void Detach();

  // The webhooks that may apply to a request for the kind, in the order they are called. Valid
  // until the next call.
  const std::vector<WebhookPtr>& For(const api::KindSchema& kind);

 private:
  void Refresh();

  const std::string_view plural_;
  const WatchCache* configurations_ = nullptr;
  storage::Revision seen_ = -1;
  struct Configured {
    api::ObjectPtr object;
    std::vector<WebhookPtr> webhooks;
  };
  std::map<std::string, Configured> by_name_;
  std::vector<WebhookPtr> all_;
  std::unordered_map<const api::KindSchema*, std::vector<WebhookPtr>> by_kind_;
};

}  // namespace drakkar::apiserver
