#pragma once

#include <string>
#include <vector>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "bootstrap/token.h"
#include "client/informer.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"

namespace drakkar::controllers {

// `info`, the ConfigMap cluster-info, with a signature of its kubeconfig for each of `tokens` and
// no others. Null if nothing changes. Pure.
api::TreePtr PlanSignatures(const api::Object& info, const std::vector<bootstrap::Token>& tokens);

// Signs cluster-info with every bootstrap token that may sign, so that a machine with a token can
// verify it (kubeadm's token discovery). Loop-bound.
class BootstrapSigner {
 public:
  // Maximum number of tokens that sign; a ConfigMap is limited to 1 MiB.
  static constexpr std::size_t kMaxSignatures = 1'000;

  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::Informer& info;     // cluster-info only
    client::Informer& secrets;  // those of bootstrap tokens
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit BootstrapSigner(Options options);

 private:
  using Done = client::WorkQueue::Done;
  void Sync(const std::string& name, Done done);

  const Options options_;
  client::ScopedClient client_;
  client::WorkQueue queue_;
};

}  // namespace drakkar::controllers
