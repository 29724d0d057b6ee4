#pragma once

#include <memory>
#include <string>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "client/informer.h"
#include "client/work_queue.h"

namespace drakkar::controllers {

// Every namespace has a service account "default" and, where the authority's certificate is given,
// a ConfigMap "kube-root-ca.crt" with it. Both come back when somebody deletes them, and the
// certificate when somebody changes it: every pod trusts what is in there.
class ServiceAccountController {
 public:
  ServiceAccountController(EventLoop& loop, Random& random, client::Client& client,
                           client::Informer& namespaces, client::Informer& accounts,
                           client::Informer& authorities, std::string ca_pem);
  // The ConfigMaps that `authorities` follows.
  static std::string AuthoritySelector();

 private:
  using Done = client::WorkQueue::Done;
  void Sync(const std::string& name, Done done);
  void PublishAuthority(const std::string& name, Done done);
  void Finish(const client::Reply& reply, const Done& done) const;
  // Creates the object; being there already is as good.
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
