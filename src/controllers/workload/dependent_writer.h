#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/exec/event_loop.h"
#include "client/client.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/scoped_client.h"

namespace drakkar::controllers {

// Creates, deletes, adopts and releases the dependents of owners (such as the pods of a
// ReplicaSet). For each owner, it remembers the writes that the informer does not show yet. An
// owner must not be processed until IsUpToDate is true, so that nothing is created twice.
//
// Creation starts slowly, with one object, then two, four, ... at a time, and stops at the first
// failure. So an owner whose pods are all rejected costs one request.
//
// Loop-bound. Writes are remembered for at most kPatience.
class DependentWriter {
 public:
  static constexpr Duration kPatience = std::chrono::minutes(5);

  // Reports the results as events about the owner. Each function may be null.
  struct Words {
    std::function<void(const api::ObjectPtr& owner, const api::Object& made)> created;
    std::function<void(const api::ObjectPtr& owner, const Error& why)> create_failed;
    std::function<void(const api::ObjectPtr& owner, const api::Object& gone)> deleted;
    std::function<void(const api::ObjectPtr& owner, const Error& why)> delete_failed;
  };
  struct Options {
    EventLoop& loop;
    client::Client& client;
    const client::Informer& dependents;
    const api::KindSchema& owner_kind;
    Words words = {};
  };
  explicit DependentWriter(Options options);

  // The result of several writes: how many succeeded, and the error of the first that failed.
  struct Outcome {
    std::size_t done = 0;
    std::optional<Error> error;
  };
  using Finished = std::function<void(Outcome)>;

  bool IsUpToDate(std::string_view owner_uid);
  void Forget(std::string_view owner_uid);
  // Waits until the informer shows this dependent, which was written for the owner, but not by this
  // writer.
  void Expect(const api::ObjectPtr& owner, const api::Object& written);

  void Create(const api::ObjectPtr& owner, std::vector<api::TreePtr> bodies, Finished finished);
  void Delete(const api::ObjectPtr& owner, std::vector<api::ObjectPtr> objects, Finished finished);
  // Does not adopt if the owner was deleted or is being deleted.
  void AdoptAndRelease(const api::ObjectPtr& owner, std::vector<api::ObjectPtr> adopt,
                       std::vector<api::ObjectPtr> release, Finished finished);
  // Updates a dependent if its resourceVersion is unchanged.
  void Update(const api::ObjectPtr& owner, const api::Object& object, api::TreePtr body,
              client::ReplyCallback done);

 private:
  struct Pending {
    std::int64_t revision = 0;                 // the informer must have reached it
    std::map<std::string, std::string> going;  // name to uid; must be gone or terminating
    MonotonicTime since{};
  };
  struct Batch;

  Pending& PendingOf(const api::ObjectPtr& owner);
  void CreateNext(const std::shared_ptr<Batch>& batch);
  void Patch(const std::shared_ptr<Batch>& batch, const api::ObjectPtr& object, std::string patch);
  client::ResourceRef RefOf(const api::Object& object) const;

  const Options options_;
  client::ScopedClient client_;
  std::unordered_map<std::string, Pending> pending_;  // by owner uid; never iterated
};

// "Created pod: x", with the event reasons of Kubernetes.
DependentWriter::Words PodWords(client::EventRecorder& events);

// The server rejected the request because the namespace is being deleted, so there is nothing left
// to do.
bool IsNamespaceTerminating(const client::Reply& reply);

}  // namespace drakkar::controllers
