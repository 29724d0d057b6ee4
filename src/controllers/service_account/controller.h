#pragma once

#include <memory>
#include <string>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "client/informer.h"
#include "client/work_queue.h"

namespace drakkar::controllers {

// Gives every namespace a service account "default" and, if there is a CA certificate, a ConfigMap
// "kube-root-ca.crt" with it. Both are restored if someone deletes them, and the ConfigMap if
// someone changes it: every pod trusts its contents.
class ServiceAccountController {
 public:
  ServiceAccountController(EventLoop& loop, Random& random, client::Client& client,
                           client::Informer& namespaces, client::Informer& accounts,
                           client::Informer& authorities, std::string ca_pem);
  // The field selector for the informer `authorities`.
  static std::string AuthoritySelector();

 private:
  using Done = client::WorkQueue::Done;
  void Sync(const std::string& name, Done done);
  void PublishAuthority(const std::string& name, Done done);
  void Finish(const client::Reply& reply, const Done& done) const;
  // Creates the object. Success if it already exists.
  void Create(std::string_view kind, const std::string& name, api::TreePtr body, Done done);

  client::Client& client_;
  client::Informer& namespaces_;
  client::Informer& accounts_;
  client::Informer& authorities_;
  const std::string ca_pem_;
  client::WorkQueue queue_;
  Lifetime lifetime_;
};

}  // namespace drakkar::controllers
