#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/informer.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"
#include "controllers/storage_version_migrator/planner.h"

namespace drakkar::controllers {

// Carries out StorageVersionMigrations: has every object of a resource written again, in the
// version that the API server stores today. Of several migrations of one resource one runs at a
// time, the oldest first. Definitions of custom resources then list only that version in
// status.storedVersions.
//
// At most kMaxResources resources at a time, a page of kPage objects of each, and kInFlight writes
// of each: between two writes the server answers others. After a restart a migration begins again
// from the first page, which is harmless. Loop-bound.
class StorageVersionMigrator {
 public:
  static constexpr std::size_t kMaxResources = 5;
  static constexpr std::int64_t kPage = 100;
  static constexpr std::size_t kInFlight = 4;
  // A resource that is not served yet may be on its way.
  static constexpr Duration kPatience = std::chrono::minutes(1);

  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::Informer& migrations;
  };
  // Adds handlers to the informer: construct it before that is started.
  explicit StorageVersionMigrator(Options options);

 private:
  using Done = client::WorkQueue::Done;
  // A migration that is being worked on.
  struct Run;
  using RunPtr = std::shared_ptr<Run>;

  void Sync(const std::string& resource, Done done);
  void OnDiscovered(const RunPtr& run, Result<client::ServedKinds> served);
  // Reads the version of the collection, up to which objects are rewritten, and writes it.
  void Begin(const RunPtr& run);
  void ListPage(const RunPtr& run);
  void Rewrite(const RunPtr& run);
  void OnRewritten(const RunPtr& run, const client::Reply& reply);
  void Succeed(const RunPtr& run);
  void Fail(const RunPtr& run, std::string_view reason, std::optional<MigrationCounts> counts);
  // Tells the definition, if the resource has one, then calls `then`.
  void Tell(const RunPtr& run, DefinitionState state, std::function<void()> then);
  void WriteStatus(const RunPtr& run, api::Draft status, Result<void> result);

  const Options options_;
  client::ScopedClient client_;
  client::WorkQueue queue_;
};

}  // namespace drakkar::controllers
