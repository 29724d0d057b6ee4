#include "apiserver/auth/service_account_tokens.h"

#include <algorithm>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/request/node_identity.h"
#include "apiserver/rest/decode.h"
#include "apiserver/validation/cause.h"
#include "base/hash/base64.h"
#include "base/ids/uuid.h"
#include "base/text/text.h"
#include "net/tls/crypto.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

// Longer strings cannot be our tokens.
constexpr std::size_t kMaxTokenBytes = 16 * 1024;
constexpr std::string_view kPodUid = "authentication.kubernetes.io/pod-uid";
constexpr std::string_view kNodeUid = "authentication.kubernetes.io/node-uid";
constexpr std::string_view kCredential = "authentication.kubernetes.io/credential-id";

std::int64_t Seconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::string Encoded(const Draft& part) {
  return Base64UrlEncode(api::WriteJson(part.Freeze()->root(), {.escape_html = false}));
}

// The plural of a kind that a token may be bound to.
std::string_view PluralOf(std::string_view kind) {
  if (kind == "Pod") return "pods";
  if (kind == "Secret") return "secrets";
  if (kind == "Node") return "nodes";
  return {};
}

}  // namespace

ServiceAccountTokens::ServiceAccountTokens(const Clock& clock, Random& random, TokenNames names)
    : clock_(clock), random_(random), names_(std::move(names)) {
  if (names_.issuers.empty()) names_.issuers.emplace_back(kIssuer);
  if (names_.audiences.empty()) names_.audiences.push_back(names_.issuers.front());
}

Result<std::unique_ptr<ServiceAccountTokens>> ServiceAccountTokens::Create(
    std::string_view private_key_pem, const Clock& clock, Random& random,
    const std::vector<std::string>& other_keys, TokenNames names) {
  std::unique_ptr<ServiceAccountTokens> tokens(
      new ServiceAccountTokens(clock, random, std::move(names)));
  ASSIGN_OR_RETURN(tokens->signer_, net::JwsSigner::Create(private_key_pem));
  if (other_keys.size() >= kMaxKeys) {
    return InvalidArgument(StrCat("more than ", kMaxKeys - 1, " keys"));
  }
  std::vector<std::string> all = {std::string(private_key_pem)};
  all.insert(all.end(), other_keys.begin(), other_keys.end());
  for (const std::string& pem : all) {
    Key key;
    ASSIGN_OR_RETURN(key.verifier, net::JwsVerifier::Create(pem));
    key.id = Base64UrlEncode(net::Sha256(key.verifier->PublicKeyDer()));
    const bool known =
        std::ranges::any_of(tokens->keys_, [&](const Key& each) { return each.id == key.id; });
    if (!known) tokens->keys_.push_back(std::move(key));
  }
  return tokens;
}

bool ServiceAccountTokens::Answer(Request& request, Response& response) {
  if (request.verb != Verb::kCreate || request.subresource != "token" ||
      request.kind->plural != "serviceaccounts") {
    return false;
  }
  if (std::optional<Failure> failure = Issue(request, response)) {
    response = Response::Failed(std::move(*failure));
  }
  return true;
}

std::optional<Failure> ServiceAccountTokens::Issue(Request& request, Response& response) {
  const api::KindSchema& body = *api::FindKind("authentication.k8s.io", "v1", "TokenRequest");
  if (std::optional<Failure> failure = DecodeBody(body, request, response.warnings)) {
    return failure;
  }
  const api::ObjectPtr account =
      core_ == nullptr
          ? nullptr
          : core_->Find("", "serviceaccounts", StrCat(request.namespace_, "/", request.name));
  if (account == nullptr) return NotFoundFailure(*request.kind, request.name);
  const Value spec = request.object->root()["spec"];
  std::int64_t seconds = spec["expirationSeconds"].integer(kDefaultSeconds);
  api::FieldErrors errors;
  if (seconds < kMinSeconds) {
    errors.push_back(Invalid("spec.expirationSeconds", seconds,
                             "may not specify a duration less than 10 minutes"));
  }
  if (seconds > kMaxSeconds) {
    errors.push_back(Invalid("spec.expirationSeconds", seconds,
                             "may not specify a duration larger than 2^32 seconds"));
  }
  if (!errors.empty()) return InvalidFailure(body, "", errors);

  if (const NodeIdentity node = IdentifyNode(request.user); node.is_node) {
    if (std::optional<Failure> failure = CheckNode(request, node.name, seconds)) return failure;
  }
  const std::int64_t now = Seconds(clock_.Now());
  Draft claims = Draft::Object();
  claims["aud"] = Draft::Array();
  for (Value audience : spec["audiences"].elements()) claims["aud"].Append(audience.str());
  if (claims["aud"].size() == 0) {
    for (const std::string& each : names_.audiences) claims["aud"].Append(each);
  }
  claims["exp"] = now + seconds;
  claims["iat"] = now;
  claims["iss"] = issuer();
  claims["jti"] = NewUuid(random_);
  Draft& about = claims["kubernetes.io"];
  about["namespace"] = request.namespace_;
  const Value bound = spec["boundObjectRef"];
  if (bound.has_value()) {
    const std::string_view kind = bound["kind"].str();
    const std::string name(bound["name"].str());
    const std::string_view plural = PluralOf(kind);
    if (plural.empty()) {
      return api::StatusBadRequest(StrCat("cannot bind token for serviceaccount to object type ",
                                          bound["apiVersion"].str(), ", Kind=", kind));
    }
    const api::ObjectPtr object =
        core_->Find("", plural, kind == "Node" ? name : StrCat(request.namespace_, "/", name));
    if (object == nullptr) return NotFoundFailure(*api::FindKind("", "v1", kind), name);
    if (const std::string_view uid = bound["uid"].str(); !uid.empty() && uid != object->uid()) {
      return ConflictFailure(*api::FindKind("", "v1", kind), name,
                             StrCat("the UID in the bound object reference (", uid,
                                    ") does not match the UID in record. The object might have "
                                    "been deleted and then recreated"));
    }
    if (kind == "Pod" && (*object)["spec"]["serviceAccountName"].str() != request.name) {
      return api::StatusBadRequest(StrCat("cannot bind token for serviceaccount ",
                                          Quote(request.name), " to pod running ",
                                          "with different serviceaccount name."));
    }
    Draft& entry = about.Entry(ToLower(kind));
    entry["name"] = name;
    entry["uid"] = object->uid();
    if (kind == "Pod") {
      const std::string node((*object)["spec"]["nodeName"].str());
      if (const api::ObjectPtr host = core_->Find("", "nodes", node); host != nullptr) {
        about["node"]["name"] = node;
        about["node"]["uid"] = host->uid();
      }
    }
  }
  about["serviceaccount"]["name"] = request.name;
  about["serviceaccount"]["uid"] = account->uid();
  claims["nbf"] = now;
  claims["sub"] = StrCat("system:serviceaccount:", request.namespace_, ":", request.name);

  const std::string signed_part =
      StrCat(Encoded(Draft{{"alg", signer_->algorithm()}, {"kid", keys_.front().id}}), ".",
             Encoded(claims));
  const Result<std::string> signature = signer_->Sign(signed_part);
  if (!signature.ok()) return api::StatusInternalError(signature.error().message);

  Draft out(request.object);
  out["apiVersion"] = "authentication.k8s.io/v1";
  out["kind"] = "TokenRequest";
  out["metadata"]["name"] = request.name;
  out["metadata"]["namespace"] = request.namespace_;
  out["metadata"]["creationTimestamp"] = api::FormatTime(clock_.Now());
  out["spec"]["audiences"] = claims["aud"];
  out["spec"]["expirationSeconds"] = seconds;
  out["status"]["token"] = StrCat(signed_part, ".", Base64UrlEncode(*signature));
  out["status"]["expirationTimestamp"] =
      api::FormatTime(clock_.Now() + std::chrono::seconds(seconds));
  response.http_status = 201;
  response.object = std::make_shared<const api::Object>(out.Freeze());
  return std::nullopt;
}

std::optional<Failure> ServiceAccountTokens::CheckNode(const Request& request,
                                                       std::string_view node,
                                                       std::int64_t& seconds) const {
  const auto refuse = [&](std::string_view why) {
    return ForbiddenFailure(*request.kind, request.name, why);
  };
  const Value spec = request.object->root()["spec"];
  const Value bound = spec["boundObjectRef"];
  const std::string name(bound["name"].str());
  if (bound["apiVersion"].str() != "v1" || bound["kind"].str() != "Pod" || name.empty()) {
    return refuse("node requested token not bound to a pod");
  }
  if (bound["uid"].str().empty()) {
    return refuse("node requested token with a pod binding without a uid");
  }
  const api::ObjectPtr pod = core_->Find("", "pods", StrCat(request.namespace_, "/", name));
  if (pod == nullptr) return NotFoundFailure(*api::FindKind("", "v1", "Pod"), name);
  if (bound["uid"].str() != pod->uid()) {
    return refuse(StrCat("the UID in the bound object reference (", bound["uid"].str(),
                         ") does not match the UID in record. The object might have been deleted "
                         "and then recreated"));
  }
  if ((*pod)["spec"]["nodeName"].str() != node) {
    return refuse("node requested token bound to a pod scheduled on a different node");
  }
  if (spec["audiences"].size() > 1) return refuse("node may only request 0 or 1 audiences");
  const std::string_view audience = spec["audiences"].at(0).str();
  std::int64_t longest = 0;
  for (Value volume : (*pod)["spec"]["volumes"].elements()) {
    for (Value source : volume["projected"]["sources"].elements()) {
      const Value token = source["serviceAccountToken"];
      if (!token.has_value() || token["audience"].str() != audience) continue;
      longest = std::max(longest, token["expirationSeconds"].integer(kDefaultSeconds));
    }
  }
  if (longest == 0) {
    return refuse(StrCat("audience ", Quote(audience), " not found in pod spec volume, ",
                         request.user.name,
                         " is not authorized to request tokens for this audience"));
  }
  seconds = std::min({seconds, std::max(longest, kMinSeconds), kMaxNodeSeconds});
  return std::nullopt;
}

bool ServiceAccountTokens::Lives(std::string_view plural, const std::string& key,
                                 std::string_view uid) const {
  const api::ObjectPtr object = core_->Find("", plural, key);
  if (object == nullptr || object->uid() != uid) return false;
  const std::string_view deleted = (*object)["metadata"]["deletionTimestamp"].str();
  if (deleted.empty()) return true;
  const Result<WallTime> when = api::ParseTime(deleted);
  return when.ok() && Seconds(*when) + kDeletionLeeway >= Seconds(clock_.Now());
}

std::optional<UserInfo> ServiceAccountTokens::Verify(std::string_view token,
                                                     const std::vector<std::string>& audiences,
                                                     std::vector<std::string>& meant_for) const {
  if (core_ == nullptr || token.size() > kMaxTokenBytes) return std::nullopt;
  const std::vector<std::string_view> parts = Split(token, '.');
  if (parts.size() != 3) return std::nullopt;
  const Result<std::string> header = Base64UrlDecode(parts[0]);
  const Result<std::string> payload = Base64UrlDecode(parts[1]);
  const Result<std::string> signature = Base64UrlDecode(parts[2]);
  if (!header.ok() || !payload.ok() || !signature.ok()) return std::nullopt;
  const Result<api::TreePtr> head = api::ParseJson(*header);
  if (!head.ok()) return std::nullopt;
  // The key decides about the algorithm; the token only has to agree.
  const std::string_view algorithm = (*head)->root()["alg"].str();
  const std::string_view id = (*head)->root()["kid"].str();
  const std::string_view signed_part = token.substr(0, parts[0].size() + 1 + parts[1].size());
  const bool is_ours = std::ranges::any_of(keys_, [&](const Key& key) {
    return key.verifier->algorithm() == algorithm && (id.empty() || id == key.id) &&
           key.verifier->Verify(signed_part, *signature);
  });
  if (!is_ours) return std::nullopt;
  const Result<api::TreePtr> tree = api::ParseJson(*payload);
  if (!tree.ok()) return std::nullopt;
  const Value claims = (*tree)->root();
  const std::int64_t now = Seconds(clock_.Now());
  if (std::ranges::find(names_.issuers, claims["iss"].str()) == names_.issuers.end() ||
      claims["exp"].integer() <= now || claims["nbf"].integer() > now) {
    return std::nullopt;
  }
  const std::vector<std::string>& wanted = audiences.empty() ? names_.audiences : audiences;
  for (Value audience : claims["aud"].elements()) {
    if (std::ranges::find(wanted, audience.str()) != wanted.end()) {
      meant_for.emplace_back(audience.str());
    }
  }
  if (meant_for.empty()) return std::nullopt;

  const Value about = claims["kubernetes.io"];
  const std::string home(about["namespace"].str());
  const std::string name(about["serviceaccount"]["name"].str());
  if (!Lives("serviceaccounts", StrCat(home, "/", name), about["serviceaccount"]["uid"].str())) {
    return std::nullopt;
  }
  for (const auto& [kind, plural] :
       {std::pair(api::FieldName("pod"), "pods"), std::pair(api::FieldName("secret"), "secrets")}) {
    const Value bound = about[kind];
    if (bound.has_value() &&
        !Lives(plural, StrCat(home, "/", bound["name"].str()), bound["uid"].str())) {
      return std::nullopt;
    }
  }
  // A pod's token ends with the pod, which ends with its node.
  if (const Value node = about["node"];
      node.has_value() && !about["pod"].has_value() &&
      !Lives("nodes", std::string(node["name"].str()), node["uid"].str())) {
    return std::nullopt;
  }
  UserInfo user;
  user.name = StrCat("system:serviceaccount:", home, ":", name);
  user.uid = about["serviceaccount"]["uid"].str();
  user.groups = {"system:serviceaccounts", StrCat("system:serviceaccounts:", home)};
  user.extra[std::string(kCredential)] = {StrCat("JTI=", claims["jti"].str())};
  auto note = [&](std::string_view key, Value value) {
    if (value.has_value()) user.extra[std::string(key)] = {std::string(value.str())};
  };
  note(kPodNameExtra, about["pod"]["name"]);
  note(kPodUid, about["pod"]["uid"]);
  note(kNodeNameExtra, about["node"]["name"]);
  note(kNodeUid, about["node"]["uid"]);
  return user;
}

std::string ServiceAccountTokens::KeysJson() const {
  Draft keys = Draft::Array();
  for (const Key& each : keys_) {
    Draft key = {{"use", "sig"}, {"kid", each.id}, {"alg", each.verifier->algorithm()}};
    const std::vector<net::JwsVerifier::Parameter> parameters = each.verifier->KeyParameters();
    const auto value = [&](std::string_view name) {
      const auto found = std::ranges::find(parameters, name, &net::JwsVerifier::Parameter::name);
      return found == parameters.end() ? std::string() : found->value;
    };
    key["kty"] = value("kty");
    if (each.verifier->algorithm() == "ES256") {
      key["crv"] = value("crv");
      key["x"] = value("x");
      key["y"] = value("y");
    } else {
      key.Entry("n") = value("n");
      key.Entry("e") = value("e");
    }
    keys.Append(std::move(key));
  }
  return api::WriteJson(Draft{{"keys", std::move(keys)}}.Freeze()->root());
}

std::string ServiceAccountTokens::ConfigurationJson() const {
  Draft algorithms = Draft::Array();
  for (const std::string_view algorithm : {"ES256", "RS256"}) {
    const bool used = std::ranges::any_of(
        keys_, [&](const Key& key) { return key.verifier->algorithm() == algorithm; });
    if (used) algorithms.Append(algorithm);
  }
  return api::WriteJson(Draft{{"issuer", issuer()},
                              {"jwks_uri", StrCat(issuer(), "/openid/v1/jwks")},
                              {"response_types_supported", Draft::Array({"id_token"})},
                              {"subject_types_supported", Draft::Array({"public"})},
                              {"id_token_signing_alg_values_supported", std::move(algorithms)}}
                            .Freeze()
                            ->root());
}

}  // namespace drakkar::apiserver
