#include "client/account_client.h"

#include <algorithm>
#include <utility>

#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::client {
namespace {

constexpr std::string_view kNamespace = "kube-system";

const api::KindSchema* Accounts() {
  static const api::KindSchema* const kind = api::FindKind("", "v1", "ServiceAccount");
  return kind;
}

const api::KindSchema* Namespaces() {
  static const api::KindSchema* const kind = api::FindKind("", "v1", "Namespace");
  return kind;
}

bool IsCode(const Reply& reply, ErrorCode code) {
  return !reply.ok() && reply.error->code == code;
}

// A watch that could not begin.
class NoWatch final : public WatchHandle {
 public:
  NoWatch(EventLoop& loop, WatchCallbacks callbacks) {
    loop.Post(lifetime_.Guard([callbacks = std::move(callbacks)] {
      // The handle may go while it is called.
      const auto on_closed = callbacks.on_closed;
      on_closed(Unavailable("there is no token for the service account yet"));
    }));
  }

 private:
  Lifetime lifetime_;
};

}  // namespace

AccountClient::AccountClient(EventLoop& loop, Client& creator, std::string account, Connect connect)
    : loop_(loop), creator_(creator), account_(std::move(account)), connect_(std::move(connect)) {}

bool AccountClient::HasToken() const {
  return client_ != nullptr && loop_.clock().Monotonic() < expires_;
}

void AccountClient::WithToken(Waiter then) {
  if (!HasToken()) {
    waiting_.push_back(std::move(then));
    return Renew();
  }
  if (loop_.clock().Monotonic() >= renew_at_) Renew();
  then(std::nullopt);
}

void AccountClient::Renew() {
  if (is_requesting_) return;
  is_requesting_ = true;
  RequestToken(/*may_create_account=*/true);
}

void AccountClient::RequestToken(bool may_create_account) {
  const std::int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(kTokenLife).count();
  const api::Draft request = {{"apiVersion", "authentication.k8s.io/v1"},
                              {"kind", "TokenRequest"},
                              {"spec", {{"expirationSeconds", seconds}}}};
  creator_.Create({Accounts(), std::string(kNamespace), account_, "token"}, request.Freeze(), {},
                  lifetime_.Guard([this, may_create_account](const Reply& reply) {
                    if (may_create_account && IsCode(reply, ErrorCode::kNotFound)) {
                      return CreateAccount(/*may_create_namespace=*/true);
                    }
                    OnToken(reply);
                  }));
}

void AccountClient::CreateAccount(bool may_create_namespace) {
  const api::Draft account = {{"apiVersion", "v1"},
                              {"kind", "ServiceAccount"},
                              {"metadata", {{"name", account_}, {"namespace", kNamespace}}}};
  creator_.Create({Accounts(), std::string(kNamespace), "", ""}, account.Freeze(), {},
                  lifetime_.Guard([this, may_create_namespace](const Reply& reply) {
                    if (reply.ok() || IsCode(reply, ErrorCode::kAlreadyExists)) {
                      return RequestToken(/*may_create_account=*/false);
                    }
                    if (!may_create_namespace || !IsCode(reply, ErrorCode::kNotFound)) {
                      return Fail(reply.error->Prefixed("create it"));
                    }
                    const api::Draft home = {{"apiVersion", "v1"},
                                             {"kind", "Namespace"},
                                             {"metadata", {{"name", kNamespace}}}};
                    creator_.Create({Namespaces(), "", "", ""}, home.Freeze(), {},
                                    lifetime_.Guard([this](const Reply&) {
                                      CreateAccount(/*may_create_namespace=*/false);
                                    }));
                  }));
}

void AccountClient::OnToken(const Reply& reply) {
  if (!reply.ok()) return Fail(reply.error->Prefixed("request a token"));
  const api::Value status = (*reply.object)["status"];
  if (status["token"].str().empty()) return Fail(Internal("the server returned no token"));
  *token_ = status["token"].str();
  const Result<WallTime> end = api::ParseTime(status["expirationTimestamp"].str());
  const Duration life =
      std::max<Duration>(end.ok() ? *end - loop_.clock().Now() : Duration::zero(), kShortestLife);
  got_ = loop_.clock().Monotonic();
  renew_at_ = got_ + life * 4 / 5;
  expires_ = got_ + life;
  if (client_ == nullptr) client_ = connect_(token_);
  Answer(std::nullopt);
}

void AccountClient::Fail(const Error& error) {
  Answer(error.Prefixed(StrCat("service account ", kNamespace, "/", account_)));
}

void AccountClient::Answer(const std::optional<Error>& error) {
  is_requesting_ = false;
  const Lifetime::Observer self = lifetime_.Observe();
  for (const Waiter& then : std::exchange(waiting_, {})) {
    if (self.alive()) then(error);
  }
}

void AccountClient::Look(const std::optional<Error>& error) {
  if (!error || error->code != ErrorCode::kUnauthenticated) return;
  if (loop_.clock().Monotonic() - got_ >= kRejectedPause) expires_ = {};
}

template <typename AnyReply>
std::function<void(AnyReply)> AccountClient::Looking(std::function<void(AnyReply)> done) {
  return [this, done = std::move(done)](AnyReply reply) {
    Look(reply.error);
    done(std::move(reply));
  };
}

template <typename AnyReply>
void AccountClient::Call(std::function<void(AnyReply)> done,
                         std::function<void(Client&, std::function<void(AnyReply)>)> send) {
  WithToken(
      [this, done = std::move(done), send = std::move(send)](const std::optional<Error>& error) {
        if (!error) return send(*client_, Looking(done));
        AnyReply reply;
        reply.error = error;
        done(std::move(reply));
      });
}

void AccountClient::Get(ResourceRef ref, ReplyCallback done) {
  Call<Reply>(std::move(done), [ref = std::move(ref)](Client& client, ReplyCallback next) {
    client.Get(ref, std::move(next));
  });
}

void AccountClient::List(ResourceRef ref, ListOptions options,
                         std::function<void(ListReply)> done) {
  Call<ListReply>(std::move(done), [ref = std::move(ref), options = std::move(options)](
                                       Client& client, std::function<void(ListReply)> next) {
    client.List(ref, options, std::move(next));
  });
}

void AccountClient::Create(ResourceRef ref, api::TreePtr body, WriteOptions options,
                           ReplyCallback done) {
  Call<Reply>(std::move(done), [ref = std::move(ref), body = std::move(body),
                                options = std::move(options)](Client& client, ReplyCallback next) {
    client.Create(ref, body, options, std::move(next));
  });
}

void AccountClient::Update(ResourceRef ref, api::TreePtr body, WriteOptions options,
                           ReplyCallback done) {
  Call<Reply>(std::move(done), [ref = std::move(ref), body = std::move(body),
                                options = std::move(options)](Client& client, ReplyCallback next) {
    client.Update(ref, body, options, std::move(next));
  });
}

void AccountClient::Patch(ResourceRef ref, PatchType type, std::string body, WriteOptions options,
                          ReplyCallback done) {
  Call<Reply>(std::move(done), [ref = std::move(ref), type, body = std::move(body),
                                options = std::move(options)](Client& client, ReplyCallback next) {
    client.Patch(ref, type, body, options, std::move(next));
  });
}

void AccountClient::Delete(ResourceRef ref, DeleteOptions options, ReplyCallback done) {
  Call<Reply>(std::move(done), [ref = std::move(ref), options = std::move(options)](
                                   Client& client, ReplyCallback next) {
    client.Delete(ref, options, std::move(next));
  });
}

void AccountClient::DeleteCollection(ResourceRef ref, ListOptions list, DeleteOptions options,
                                     ReplyCallback done) {
  Call<Reply>(std::move(done), [ref = std::move(ref), list = std::move(list),
                                options = std::move(options)](Client& client, ReplyCallback next) {
    client.DeleteCollection(ref, list, options, std::move(next));
  });
}

std::unique_ptr<WatchHandle> AccountClient::Watch(ResourceRef ref, WatchOptions options,
                                                  WatchCallbacks callbacks) {
  if (!HasToken()) {
    Renew();
    return std::make_unique<NoWatch>(loop_, std::move(callbacks));
  }
  if (loop_.clock().Monotonic() >= renew_at_) Renew();
  callbacks.on_closed = [this, on_closed = std::move(callbacks.on_closed)](Error error) {
    Look(error);
    on_closed(std::move(error));
  };
  return client_->Watch(std::move(ref), std::move(options), std::move(callbacks));
}

void AccountClient::Discover(std::function<void(Result<ServedKinds>)> done) {
  WithToken([this, done = std::move(done)](const std::optional<Error>& error) {
    if (error) return done(*error);
    client_->Discover(done);
  });
}

}  // namespace drakkar::client
