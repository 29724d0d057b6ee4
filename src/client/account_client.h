#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"

namespace drakkar::client {

// A client with the identity of a service account in kube-system, for a component that acts under
// an account of its own. Another client, which may create tokens, gets them: the first when there
// is a call to make, the next one when four fifths of its life have passed or the server rejected
// it. It creates the account, and the namespace, if they are missing.
//
// Calls wait for the first token. If there is none to be had, they fail, and the next call tries
// again. Loop-bound.
class AccountClient final : public Client {
 public:
  static constexpr Duration kTokenLife = std::chrono::hours(1);
  // A token is used at least this long, because the clocks of the machines may differ.
  static constexpr Duration kShortestLife = std::chrono::minutes(10);
  // A token that was rejected is used at least this long before another one is created.
  static constexpr Duration kRejectedPause = std::chrono::seconds(5);

  // Makes a client that sends the token, which changes.
  using Connect = std::function<std::unique_ptr<Client>(std::shared_ptr<const std::string> token)>;

  // `creator` must outlive it.
  AccountClient(EventLoop& loop, Client& creator, std::string account, Connect connect);

  void Get(ResourceRef ref, ReplyCallback done) override;
  void List(ResourceRef ref, ListOptions options, std::function<void(ListReply)> done) override;
  void Create(ResourceRef ref, api::TreePtr body, WriteOptions options,
              ReplyCallback done) override;
  void Update(ResourceRef ref, api::TreePtr body, WriteOptions options,
              ReplyCallback done) override;
  void Patch(ResourceRef ref, PatchType type, std::string body, WriteOptions options,
             ReplyCallback done) override;
  void Delete(ResourceRef ref, DeleteOptions options, ReplyCallback done) override;
  void DeleteCollection(ResourceRef ref, ListOptions list, DeleteOptions options,
                        ReplyCallback done) override;
  // Without a token it ends at once, and the caller watches again.
  std::unique_ptr<WatchHandle> Watch(ResourceRef ref, WatchOptions options,
                                     WatchCallbacks callbacks) override;
  void Discover(std::function<void(Result<ServedKinds>)> done) override;

 private:
  using Waiter = std::function<void(const std::optional<Error>& error)>;

  bool HasToken() const;
  // Calls `then` with a client that has a token, or with the reason why there is none.
  void WithToken(Waiter then);
  void Renew();
  void RequestToken(bool may_create_account);
  void CreateAccount(bool may_create_namespace);
  void OnToken(const Reply& reply);
  void Fail(const Error& error);
  void Answer(const std::optional<Error>& error);
  // Notes that the server rejected the token.
  void Look(const std::optional<Error>& error);
  template <typename AnyReply>
  std::function<void(AnyReply)> Looking(std::function<void(AnyReply)> done);
  template <typename AnyReply>
  void Call(std::function<void(AnyReply)> done,
            std::function<void(Client&, std::function<void(AnyReply)>)> send);

  EventLoop& loop_;
  Client& creator_;
  const std::string account_;
  const Connect connect_;
  const std::shared_ptr<std::string> token_ = std::make_shared<std::string>();
  std::unique_ptr<Client> client_;  // null before the first token
  MonotonicTime got_{};
  MonotonicTime renew_at_{};
  MonotonicTime expires_{};
  bool is_requesting_ = false;
  std::vector<Waiter> waiting_;  // as many as the component has calls
  Lifetime lifetime_;
};

}  // namespace drakkar::client
