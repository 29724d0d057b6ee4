#include "apiserver/webhook/webhook_set.h"

#include "api/scheme/scheme.h"
#include "apiserver/webhook/endpoint.h"
#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";
constexpr std::int64_t kDefaultTimeoutSeconds = 10;

std::optional<ReviewVersion> FirstKnown(api::Value versions) {
  for (api::Value each : versions.elements()) {
    if (each.str() == "v1") return ReviewVersion::kV1;
    if (each.str() == "v1beta1") return ReviewVersion::kV1beta1;
  }
  return std::nullopt;
}

// Reviews of tokens and permissions: a webhook that intercepts them could lock everyone out.
bool IsReview(const api::KindSchema& kind) {
  return kind.group == "authentication.k8s.io" || kind.group == "authorization.k8s.io";
}

}  // namespace

WebhookClient::WebhookClient(api::Value client_config) {
  if (const api::Value service = client_config["service"]; service.is_object()) {
    service_namespace = service["namespace"].str();
    service_name = service["name"].str();
    path = service["path"].str();
    port = service["port"].integer(443);
  } else {
    url = client_config["url"].str();
    if (url.empty()) error = "webhook configuration must have either service or URL";
  }
  if (path.empty() || path[0] != '/') path.insert(0, "/");
  const Result<std::string> pem = Base64Decode(client_config["caBundle"].str());
  if (pem.ok()) {
    ca_pem = *pem;
  } else {
    error = StrCat("caBundle: ", pem.error().message);
  }
}

WebhookClient::Located WebhookClient::Locate(const Core& core, Random& random,
                                             std::string_view query) const {
  Located located;
  located.error = error;
  WebhookTarget& target = located.target;
  target.ca_pem = ca_pem;
  if (!error.empty()) return located;
  if (!url.empty()) {
    target.url = StrCat(url, query);
    target.shown_url = target.url;
    return located;
  }
  target.server_name = StrCat(service_name, ".", service_namespace, ".svc");
  target.shown_url = StrCat("https://", target.server_name, ":", port, path, query);
  const Result<std::string> host =
      ResolveService(core, service_namespace, service_name, port, random);
  if (!host.ok()) {
    located.error = StrCat("Post ", Quote(target.shown_url), ": ", host.error().message);
    return located;
  }
  target.url = StrCat("https://", *host, path, query);
  return located;
}

Webhook::Webhook(api::ObjectPtr from, api::Value source, std::size_t index)
    : configuration(std::move(from)),
      name(source["name"].str()),
      id(StrCat(configuration->name(), "/", name, "/", index)),
      match(source, source["rules"], api::Value()),
      client(source["clientConfig"]),
      timeout(std::chrono::seconds(source["timeoutSeconds"].integer(kDefaultTimeoutSeconds))),
      ignores_failures(source["failurePolicy"].str("Fail") == "Ignore"),
      has_side_effects(source["sideEffects"].str() != "None" &&
                       source["sideEffects"].str() != "NoneOnDryRun"),
      is_reinvocable(source["reinvocationPolicy"].str() == "IfNeeded"),
      version(FirstKnown(source["admissionReviewVersions"])),
      source_(source) {}

const MatchConditions& Webhook::conditions() const {
  if (conditions_ == nullptr) {
    conditions_ = std::make_unique<const MatchConditions>(source_["matchConditions"]);
  }
  return *conditions_;
}

void WebhookSet::Attach(const Core& core) {
  Detach();
  configurations_ = core.FindCache(kGroup, plural_);
}

void WebhookSet::Detach() {
  configurations_ = nullptr;
  seen_ = -1;
  by_name_.clear();
  all_.clear();
  by_kind_.clear();
}

const std::vector<WebhookPtr>& WebhookSet::For(const api::KindSchema& kind) {
  static const std::vector<WebhookPtr> none;
  if (configurations_ == nullptr) return none;
  if (configurations_->last_change() != seen_) Refresh();
  // Webhooks must not lock out the administrator who wants to change them.
  if (all_.empty() || kind.group == kGroup || IsReview(kind)) return none;
  const auto [found, is_new] = by_kind_.try_emplace(&kind);
  if (is_new) {
    for (const WebhookPtr& each : all_) {
      if (!each->match.rules().empty() && each->match.ConcernsKind(kind)) {
        found->second.push_back(each);
      }
    }
  }
  return found->second;
}

void WebhookSet::Refresh() {
  seen_ = configurations_->last_change();
  by_kind_.clear();
  all_.clear();
  std::map<std::string, Configured> previous = std::exchange(by_name_, {});
  for (const auto& [name, object] : configurations_->objects()) {
    Configured& configured = by_name_[name];
    const auto before = previous.find(name);
    if (before != previous.end() && before->second.object == object) {
      configured = std::move(before->second);
    } else {
      configured.object = object;
      std::size_t index = 0;
      for (api::Value source : object->root()["webhooks"].elements()) {
        configured.webhooks.push_back(std::make_shared<const Webhook>(object, source, index++));
      }
    }
    all_.insert(all_.end(), configured.webhooks.begin(), configured.webhooks.end());
  }
}

}  // namespace drakkar::apiserver
