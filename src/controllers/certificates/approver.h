#pragma once

#include <set>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"
#include "controllers/certificates/planner.h"

namespace drakkar::controllers {

// Approves requests for certificates of nodes (see PlanApproval). Loop-bound; remembers the names
// of requests that wait for a Node, at most one per request.
class CertificateApprover {
 public:
  // How soon a request is reviewed again if its requester lacked the permission.
  static constexpr Duration kReviewAgain = std::chrono::minutes(1);

  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::EventRecorder& events;
    client::Informer& requests;
    client::Informer& nodes;
    client::Informer& services;
    client::Informer& info;  // cluster-info only
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit CertificateApprover(Options options);

 private:
  using Done = client::WorkQueue::Done;
  void Sync(const std::string& name, Done done);
  // Requests the reviews from `next` on, one after the other.
  void Review(const api::ObjectPtr& request, const ApprovalPlan& plan, std::size_t next, Done done);
  void Approve(const api::ObjectPtr& request, std::string_view message, Done done);
  void AddWaiting();
  ReservedNames Reserved() const;

  const Options options_;
  client::ScopedClient client_;
  std::set<std::string> waiting_;
  client::WorkQueue queue_;
};

}  // namespace drakkar::controllers
