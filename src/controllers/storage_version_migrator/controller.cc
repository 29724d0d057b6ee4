#include "controllers/storage_version_migrator/controller.h"

#include "api/json/writer.h"
#include "api/meta/time.h"
#include "base/text/text.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {
namespace {

constexpr std::string_view kFieldManager = "storage-version-migrator-controller";

const api::KindSchema& Definitions() {
  static const api::KindSchema& kind =
      *api::FindKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
  return kind;
}

bool IsOver(const client::Reply& reply) {
  return reply.ok() || reply.error->code == ErrorCode::kNotFound;
}

}  // namespace

struct StorageVersionMigrator::Run {
  api::ObjectPtr migration;
  const api::KindSchema* kind = nullptr;
  std::int64_t up_to = 0;  // objects with a later version have been written since
  std::string next_page;
  std::vector<api::ObjectPtr> page;
  std::size_t next = 0;  // of `page`
  std::size_t in_flight = 0;
  MigrationCounts counts;
  std::optional<Error> error;  // no more writes are started
  Done done;
};

StorageVersionMigrator::StorageVersionMigrator(Options options)
    : options_(options),
      client_(options.client),
      queue_(options.loop, options.random, {"storage-version-migrator", kMaxResources},
             [this](const std::string& resource, Done done) { Sync(resource, std::move(done)); }) {
  const auto look = [this](const api::ObjectPtr& each) { queue_.Add(MigratedResource(*each)); };
  options_.migrations.AddHandlers(
      {.on_add = look,
       .on_update = [look](const api::ObjectPtr&, const api::ObjectPtr& after) { look(after); },
       .on_delete = look});
}

void StorageVersionMigrator::Sync(const std::string& resource, Done done) {
  std::vector<api::ObjectPtr> migrations;
  for (const auto& [name, each] : options_.migrations.objects()) {
    if (MigratedResource(*each) == resource) migrations.push_back(each);
  }
  auto run = std::make_shared<Run>();
  run->migration = ChooseMigration(migrations);
  if (run->migration == nullptr) return done(Ok());
  run->done = std::move(done);
  client_.Discover(
      [this, run](Result<client::ServedKinds> served) { OnDiscovered(run, std::move(served)); });
}

void StorageVersionMigrator::OnDiscovered(const RunPtr& run, Result<client::ServedKinds> served) {
  if (!served.ok()) return run->done(served.error());
  const api::Object& migration = *run->migration;
  const api::Value resource = migration["spec"]["resource"];
  for (const api::KindSchema* kind : served->kinds) {
    if (kind->group == resource["group"].str() && kind->plural == resource["resource"].str()) {
      run->kind = kind;
    }
  }
  if (run->kind == nullptr) {
    const std::optional<WallTime> created = TimeOf(migration["metadata"]["creationTimestamp"]);
    const bool is_young = created && options_.loop.clock().Now() - *created < kPatience;
    if (is_young || !served->unreachable.empty()) {
      return run->done(Unavailable(StrCat(MigratedResource(migration), " is not served")));
    }
    return Fail(run, "resource does not exist in discovery", std::nullopt);
  }
  if (!CanMigrate(*run->kind)) {
    return Fail(run,
                StrCat("resource ",
                       Quote(StrCat(run->kind->group, "/", run->kind->version,
                                    ", Resource=", run->kind->plural)),
                       " does not support discovery operations: [update patch list]"),
                std::nullopt);
  }
  const std::optional<std::int64_t> up_to =
      ParseInt64(migration["status"]["resourceVersion"].str());
  if (!up_to) return Begin(run);
  run->up_to = *up_to;
  ListPage(run);
}

void StorageVersionMigrator::Begin(const RunPtr& run) {
  client_.List({run->kind, "", "", ""}, {.limit = 1}, [this, run](client::ListReply reply) {
    if (!reply.ok()) return run->done(*reply.error);
    Tell(run, DefinitionState::kRunning, [this, run, version = reply.resource_version] {
      // The changed status brings us back.
      WriteStatus(run, StatusOfRunning(*run->migration, version, options_.loop.clock().Now()),
                  Ok());
    });
  });
}

void StorageVersionMigrator::ListPage(const RunPtr& run) {
  client_.List({run->kind, "", "", ""}, {.limit = kPage, .continue_token = run->next_page},
               [this, run](client::ListReply reply) {
                 if (!reply.ok()) return run->done(*reply.error);
                 run->next_page = std::move(reply.continue_token);
                 run->page.clear();
                 run->next = 0;
                 run->counts.total += reply.items.size();
                 for (api::ObjectPtr& each : reply.items) {
                   if (each->resource_version() <= run->up_to) run->page.push_back(std::move(each));
                 }
                 run->counts.left = run->page.size();
                 Rewrite(run);
               });
}

void StorageVersionMigrator::Rewrite(const RunPtr& run) {
  while (!run->error && run->next < run->page.size() && run->in_flight < kInFlight) {
    const api::Object& object = *run->page[run->next++];
    ++run->in_flight;
    client_.Patch({run->kind, std::string(object.namespace_()), std::string(object.name()), ""},
                  client::PatchType::kMerge, RewritePatch(*run->kind, object),
                  {.field_manager = std::string(kFieldManager)},
                  [this, run](const client::Reply& reply) { OnRewritten(run, reply); });
  }
  if (run->in_flight > 0) return;
  if (run->error) {
    if (!IsTransient(*run->error)) return Fail(run, run->error->message, run->counts);
    return WriteStatus(
        run,
        StatusOfAttempt(*run->migration, run->counts, *run->error, options_.loop.clock().Now()),
        *run->error);
  }
  if (!run->next_page.empty()) return ListPage(run);
  Succeed(run);
}

void StorageVersionMigrator::OnRewritten(const RunPtr& run, const client::Reply& reply) {
  --run->in_flight;
  // If it was changed since it was listed, it has been written again; and a new object is written
  // as it should be.
  const bool is_written = IsOver(reply) || reply.error->code == ErrorCode::kConflict ||
                          reply.error->code == ErrorCode::kFailedPrecondition;
  if (is_written) {
    --run->counts.left;
  } else if (!run->error || IsTransient(*run->error)) {
    run->error = reply.error;
  }
  Rewrite(run);
}

void StorageVersionMigrator::Succeed(const RunPtr& run) {
  Tell(run, DefinitionState::kSucceeded, [this, run] {
    WriteStatus(run, StatusOfSuccess(*run->migration, options_.loop.clock().Now()), Ok());
  });
}

void StorageVersionMigrator::Fail(const RunPtr& run, std::string_view reason,
                                  std::optional<MigrationCounts> counts) {
  api::Draft status = StatusOfFailure(*run->migration, reason, counts, options_.loop.clock().Now());
  const auto write = [this, run, status = std::move(status)] { WriteStatus(run, status, Ok()); };
  if (run->kind == nullptr) return write();
  Tell(run, DefinitionState::kFailed, write);
}

void StorageVersionMigrator::Tell(const RunPtr& run, DefinitionState state,
                                  std::function<void()> then) {
  const std::string name = StrCat(run->kind->plural, ".", run->kind->group);
  // No definition has such a name.
  if (run->kind->group.find('.') == std::string_view::npos) return then();
  client_.Get({&Definitions(), "", name, ""},
              [this, run, state, name, then = std::move(then)](client::Reply found) {
                if (!found.ok() && found.error->code == ErrorCode::kNotFound) return then();
                if (!found.ok()) return run->done(*found.error);
                const api::Draft body = DefinitionStatus(*found.object, *run->migration, state,
                                                         options_.loop.clock().Now());
                client_.Patch({&Definitions(), "", name, "status"}, client::PatchType::kApply,
                              api::WriteJson(body.Freeze()->root()),
                              {.field_manager = std::string(kFieldManager), .force = true},
                              [run, then](const client::Reply& written) {
                                if (!IsOver(written)) return run->done(*written.error);
                                then();
                              });
              });
}

void StorageVersionMigrator::WriteStatus(const RunPtr& run, api::Draft status,
                                         Result<void> result) {
  api::Draft body(run->migration->tree());
  body["status"] = std::move(status);
  client_.Update({&options_.migrations.kind(), "", std::string(run->migration->name()), "status"},
                 body.Freeze(), {}, [run, result = std::move(result)](const client::Reply& reply) {
                   run->done(IsOver(reply) ? result : Result<void>(*reply.error));
                 });
}

}  // namespace drakkar::controllers
