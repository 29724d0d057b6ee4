#include "node/runtime/registry/registry_fetch.h"

#include <algorithm>

#include "base/hash/base64.h"
#include "base/text/text.h"
#include "net/http/url.h"
#include "net/socket/address_kind.h"
#include "node/runtime/json.h"

namespace drakkar::node {
namespace {

constexpr Duration kTokenTimeout = std::chrono::seconds(60);

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Scheme, host and port: what credentials belong to.
std::string OriginOf(const net::Url& url) {
  return StrCat(url.scheme, "://", url.host, ":", url.port);
}

// A registry names the server of its tokens, and where its blobs are. It must not lead the node to
// what only this machine can reach: its own services, and those that give it its identity.
bool MayLeadTo(const net::Url& from, const net::Url& to) {
  if (net::IsMetadataService(to.host)) return false;
  const auto is_own = [](const net::Url& url) {
    return ToLower(url.host) == "localhost" ||
           net::KindOfAddress(url.host) == net::AddressKind::kLoopback;
  };
  switch (net::KindOfAddress(to.host)) {
    case net::AddressKind::kUnspecified:
    case net::AddressKind::kLinkLocal:
    case net::AddressKind::kMulticast:
      return false;
    default:
      return !is_own(to) || is_own(from);
  }
}

std::string BasicOf(const RegistryCredential& credential) {
  return StrCat("Basic ", Base64Encode(StrCat(credential.username, ":", credential.password)));
}

// A registry's error message, truncated and without control characters.
std::string MessageOf(std::string_view body) {
  std::string text;
  if (auto tree = ParseJson(body); tree.ok()) {
    for (api::Value error : (*tree)->root()["errors"].elements()) {
      if (!text.empty()) text += "; ";
      text += error["message"].str().empty() ? error["code"].str() : error["message"].str();
    }
  }
  constexpr std::size_t kMaxMessage = 200;
  text.resize(std::min(text.size(), kMaxMessage));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  while (!text.empty() && !IsValidUtf8(text)) text.pop_back();
  return text.empty() ? "" : ": " + text;
}

}  // namespace

// One Get, including its redirects and authentication.
class RegistryFetcher::Request final : public net::StreamSink {
 public:
  Request(RegistryFetcher& owner, Get get) : owner_(owner), get_(std::move(get)) {
    url_ = owner.endpoint_.base + get_.path;
  }

  void OnResponse(int status, const net::Headers& headers) override {
    response_ = {status, headers};
    received_ = 0;
    body_.clear();
    is_success_ = status == 200 || status == 206;
    if (is_success_ && is_token_ == false) failure_ = get_.on_response(response_);
    if (failure_ && !failure_->ok()) Stop();
  }
  void OnData(std::string_view bytes) override {
    if (is_ended_) return;
    received_ += bytes.size();
    if (is_token_ || !is_success_) {
      const std::size_t most = is_token_ ? kMaxTokenBytes : kMaxErrorBytes;
      body_.append(bytes.substr(0, most - std::min(most, body_.size())));
      return;
    }
    if (received_ > get_.max_bytes) {
      failure_ = Error{ErrorCode::kDataLoss, "the registry sent more bytes than it announced"};
      return Stop();
    }
    failure_ = get_.on_data(bytes);
    if (!failure_->ok()) Stop();
  }
  void OnEnd(Result<void> result) override {
    if (std::exchange(is_ended_, true)) return;
    End(std::move(result));
  }

  // Ends the transfer; posted, because the caller is inside the client.
  void Stop() {
    if (std::exchange(is_ended_, true)) return;
    owner_.loop_.Post(owner_.lifetime_.Guard([this, self = self_.lock()] {
      if (self == nullptr) return;
      handle_.reset();
      End(Ok());
    }));
  }

  void End(Result<void> result);

  RegistryFetcher& owner_;
  Get get_;
  std::weak_ptr<Request> self_;
  std::string url_;
  bool sends_credentials_ = true;  // not after a redirect to another origin
  int redirects_ = 0;
  int authentications_ = 0;
  bool is_token_ = false;  // the request in flight is for a token
  bool is_success_ = false;
  bool is_ended_ = false;
  std::uint64_t received_ = 0;
  Response response_;
  std::string body_;
  std::optional<Result<void>> failure_;
  std::unique_ptr<net::RequestHandle> handle_;
};

RegistryFetcher::RegistryFetcher(EventLoop& loop, RegistryEndpoint endpoint, std::string repository,
                                 std::vector<RegistryCredential> credentials)
    : loop_(loop),
      endpoint_(std::move(endpoint)),
      repository_(std::move(repository)),
      credentials_(std::move(credentials)) {}

RegistryFetcher::~RegistryFetcher() = default;

void RegistryFetcher::Fetch(Get get) {
  auto request = std::make_shared<Request>(*this, std::move(get));
  request->self_ = request;
  requests_.push_back(request);
  Send(request);
}

void RegistryFetcher::Send(const std::shared_ptr<Request>& request) {
  net::ClientRequest ask;
  ask.url = request->url_;
  if (!request->get_.accept.empty()) ask.headers.Add("Accept", request->get_.accept);
  if (request->get_.from > 0) ask.headers.Add("Range", StrCat("bytes=", request->get_.from, "-"));
  if (request->sends_credentials_ && !authorization_.empty()) {
    ask.headers.Add("Authorization", authorization_);
  }
  request->is_token_ = false;
  request->is_ended_ = false;
  request->failure_.reset();
  request->handle_ = endpoint_.http->Stream(std::move(ask), *request);
}

void RegistryFetcher::Request::End(Result<void> result) {
  const std::shared_ptr<Request> self = self_.lock();
  // Posted, because the client still uses the sink, which may be sent again.
  owner_.loop_.Post(owner_.lifetime_.Guard([this, self, result = std::move(result)]() mutable {
    if (self == nullptr) return;
    RegistryFetcher& owner = owner_;
    handle_.reset();
    if (failure_ && !failure_->ok()) return owner.Finish(self, *failure_);
    if (!result.ok()) return owner.Finish(self, std::move(result));
    if (is_token_) {
      if (is_success_) return owner.OnToken(self, body_);
      return owner.OnToken(
          self, Error{ErrorCode::kForbidden,
                      StrCat("the token server answered ", response_.status, MessageOf(body_))});
    }
    if (is_success_) return owner.Finish(self, Ok());
    if (IsRedirect(response_.status)) {
      return owner.Redirect(self, response_.headers.Get("location"));
    }
    if (response_.status == 401 || response_.status == 403) {
      std::vector<std::string> challenges;
      for (const auto& [name, value] : response_.headers) {
        if (net::EqualsIgnoreCase(name, "www-authenticate")) challenges.push_back(value);
      }
      const Error refused{ErrorCode::kForbidden,
                          StrCat("authorization failed: the registry answered ", response_.status,
                                 MessageOf(body_))};
      if (!sends_credentials_ || challenges.empty()) return owner.Finish(self, refused);
      auto challenge = ParseChallenge(challenges);
      if (!challenge.ok()) return owner.Finish(self, challenge.error());
      // The registry asks again after it got what it wanted: this credential is not good enough.
      if (authentications_ > 0) return owner.TryNextCredential(self, refused);
      return owner.Authenticate(self, *challenge);
    }
    const ErrorCode code = response_.status == 404   ? ErrorCode::kNotFound
                           : response_.status == 429 ? ErrorCode::kResourceExhausted
                                                     : ErrorCode::kUnavailable;
    owner.Finish(self,
                 Error{code, StrCat(response_.status == 404 ? "not found" : "the registry",
                                    response_.status == 404 ? "" : " answered ",
                                    response_.status == 404 ? "" : std::to_string(response_.status),
                                    MessageOf(body_))});
  }));
}

void RegistryFetcher::Authenticate(const std::shared_ptr<Request>& request,
                                   const AuthChallenge& challenge) {
  ++request->authentications_;
  const RegistryCredential* credential =
      credential_ < credentials_.size() ? &credentials_[credential_] : nullptr;
  if (!challenge.is_bearer) {
    if (credential == nullptr) {
      return Finish(
          request, Error{ErrorCode::kForbidden, "authorization failed: no basic auth credentials"});
    }
    authorization_ = BasicOf(*credential);
    return Send(request);
  }
  auto realm = net::ParseUrl(challenge.realm);
  if (!realm.ok() || (realm->scheme != "https" && !endpoint_.allows_http)) {
    return Finish(request,
                  Error{ErrorCode::kForbidden, "the registry's token server does not use HTTPS"});
  }
  const auto registry = net::ParseUrl(endpoint_.base);
  if (registry.ok() && !MayLeadTo(*registry, *realm)) {
    return Finish(request, Error{ErrorCode::kForbidden,
                                 StrCat("the registry's token server has the address ", realm->host,
                                        ", which only this machine can reach")});
  }
  net::ClientRequest ask;
  ask.url = StrCat(
      challenge.realm, challenge.realm.find('?') == std::string::npos ? "?" : "&",
      "service=", net::PercentEncode(challenge.service), "&scope=",
      net::PercentEncode(challenge.scope.empty() ? StrCat("repository:", repository_, ":pull")
                                                 : challenge.scope));
  ask.timeout = kTokenTimeout;
  if (credential != nullptr) ask.headers.Add("Authorization", BasicOf(*credential));
  request->is_token_ = true;
  request->is_ended_ = false;
  request->failure_.reset();
  request->handle_ = endpoint_.http->Stream(std::move(ask), *request);
}

void RegistryFetcher::OnToken(const std::shared_ptr<Request>& request, Result<std::string> body) {
  if (!body.ok()) return TryNextCredential(request, std::move(body).error());
  auto tree = ParseJson(*body);
  std::string token;
  if (tree.ok()) {
    const api::Value root = (*tree)->root();
    token = root["token"].str().empty() ? root["access_token"].str() : root["token"].str();
  }
  if (token.empty() || !net::IsHeaderValue(token)) {
    return Finish(request, Error{ErrorCode::kForbidden, "the token server returned no token"});
  }
  authorization_ = "Bearer " + token;
  Send(request);
}

void RegistryFetcher::TryNextCredential(const std::shared_ptr<Request>& request, Error error) {
  authorization_.clear();
  if (credential_ >= credentials_.size() || ++credential_ >= credentials_.size()) {
    return Finish(request, std::move(error));
  }
  request->authentications_ = 0;
  Send(request);
}

void RegistryFetcher::Redirect(const std::shared_ptr<Request>& request, std::string_view location) {
  auto fail = [&](std::string_view why) {
    Finish(request, Unavailable(StrCat("the registry redirects ", why)));
  };
  if (++request->redirects_ > kMaxRedirects) return fail("too often");
  auto before = net::ParseUrl(request->url_);
  if (!before.ok()) return fail("from something that is not a URL");
  std::string target(location);
  if (target.starts_with("//")) target = StrCat(before->scheme, ":", target);
  if (target.starts_with("/")) target = StrCat(before->scheme, "://", before->Authority(), target);
  auto after = net::ParseUrl(target);
  if (!after.ok()) return fail("to something that is not a URL");
  if (after->scheme != "https" && before->scheme == "https") return fail("from HTTPS to HTTP");
  if (after->scheme != "https" && !endpoint_.allows_http) return fail("to plain HTTP");
  if (!MayLeadTo(*before, *after)) {
    return Finish(request,
                  Error{ErrorCode::kForbidden, StrCat("the registry redirects to ", after->host,
                                                      ", which only this machine can reach")});
  }
  if (OriginOf(*before) != OriginOf(*after)) request->sends_credentials_ = false;
  request->url_ = target;
  Send(request);
}

void RegistryFetcher::Finish(const std::shared_ptr<Request>& request, Result<void> result) {
  std::erase(requests_, request);
  auto done = std::move(request->get_.done);
  done(std::move(result));
}

}  // namespace drakkar::node
