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

// Creates, deletes, adopts and releases the dependents of owners (the pods of a ReplicaSet), and
// remembers per owner what the copy of the dependents does not show yet: an owner must not be
// worked on before IsUpToDate, so that nothing is created twice.
//
// Creation starts slowly: one, then two, four, ... at a time, and stops at the first failure, so
// that an owner whose pods are all refused costs one request.
//
// Loop-bound. Remembers what is on its way, for kPatience at most.
class DependentWriter {
 public:
  static constexpr Duration kPatience = std::chrono::minutes(5);

  // Tells the user what was done, as events about the owner; each may be null.
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

  // What became of several writes: how many were done, and why the first that failed did.
  struct Outcome {
    std::size_t done = 0;
    std::optional<Error> error;
  };
  using Finished = std::function<void(Outcome)>;

  bool IsUpToDate(std::string_view owner_uid);
  void Forget(std::string_view owner_uid);
  // The copy must show this dependent, which somebody else than this writer wrote for the owner.
  void Expect(const api::ObjectPtr& owner, const api::Object& written);

  void Create(const api::ObjectPtr& owner, std::vector<api::TreePtr> bodies, Finished finished);
  void Delete(const api::ObjectPtr& owner, std::vector<api::ObjectPtr> objects, Finished finished);
  // Adopting is refused if the owner turns out to be gone or going.
  void AdoptAndRelease(const api::ObjectPtr& owner, std::vector<api::ObjectPtr> adopt,
                       std::vector<api::ObjectPtr> release, Finished finished);
  // An update of a dependent, with its version as a condition.
  void Update(const api::ObjectPtr& owner, const api::Object& object, api::TreePtr body,
              client::ReplyCallback done);

 private:
  struct Pending {
    std::int64_t revision = 0;                 // the copy must have come to
    std::map<std::string, std::string> going;  // names and uids that must be gone, or going
    MonotonicTime since{};
  };
  struct Batch;

  Pending& PendingOf(const api::ObjectPtr& owner);
  void CreateNext(const std::shared_ptr<Batch>& batch);
  void Patch(const std::shared_ptr<Batch>& batch, const api::ObjectPtr& object, std::string patch);
  client::ResourceRef RefOf(const api::Object& object) const;

  const Options options_;
  client::ScopedClient client_;
  std::unordered_map<std::string, Pending> pending_;  // by owner uid; looked up only
};

// "Created pod: x" with the reasons of Kubernetes.
DependentWriter::Words PodWords(client::EventRecorder& events);

// The server refused because the namespace is going: there is nothing to do any more.
bool IsNamespaceTerminating(const client::Reply& reply);

}  // namespace drakkar::controllers
