#pragma once

#include <functional>
#include <vector>

#include "api/meta/label_selector.h"
#include "client/scoped_client.h"
#include "controllers/workload/dependent_writer.h"
#include "controllers/workload/owned_index.h"
#include "controllers/workload/revisions.h"

namespace drakkar::controllers {

// Keeps the ControllerRevisions of DaemonSets or StatefulSets: adopts them, records the current
// template, and deletes old ones. Every write makes the informer report a change, after which the
// owner is processed again; until then IsUpToDate is false. Loop-bound.
class RevisionKeeper {
 public:
  struct Options {
    EventLoop& loop;
    client::Client& client;
    OwnedIndex& revisions;
    const api::KindSchema& owner_kind;
    std::string_view hash_label;
  };
  explicit RevisionKeeper(Options options);

  bool IsUpToDate(std::string_view owner_uid) { return writer_.IsUpToDate(owner_uid); }
  void Forget(std::string_view owner_uid) { writer_.Forget(owner_uid); }

  using Done = std::function<void(Result<void>)>;
  // Returns the revision of the owner's current template, and puts all its revisions into `all`.
  // Returns null if something had to be written first; then calls `done`, and the owner must not be
  // processed further.
  api::ObjectPtr Ensure(const api::ObjectPtr& owner, const api::LabelSelector& selector,
                        std::vector<api::ObjectPtr>& all, Done done);
  // Deletes the revisions beyond the owner's limit. Failures are not reported: the next change of
  // the owner or its pods tries again.
  void CleanUp(const api::ObjectPtr& owner, std::vector<api::ObjectPtr> all,
               const std::function<bool(const api::Object&)>& in_use);

 private:
  void Create(const api::ObjectPtr& owner, RevisionPlan plan, Done done);
  void RaiseCollisions(const api::ObjectPtr& owner, Done done);

  const Options options_;
  client::ScopedClient client_;
  DependentWriter writer_;
};

}  // namespace drakkar::controllers
