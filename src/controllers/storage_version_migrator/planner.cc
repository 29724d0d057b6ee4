#include "controllers/storage_version_migrator/planner.h"

#include <algorithm>

#include "api/json/writer.h"
#include "api/meta/time.h"
#include "base/text/text.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {
namespace {

using api::Draft;
using api::Value;

constexpr std::string_view kRunning = "Running";
constexpr std::string_view kSucceeded = "Succeeded";
constexpr std::string_view kFailed = "Failed";
constexpr std::string_view kRunningReason = "MigrationRunning";
constexpr std::string_view kCompleted = "Migration completed";
constexpr std::string_view kStorageMigrating = "StorageMigrating";

bool Holds(const api::Object& migration, std::string_view type) {
  return FindCondition(migration["status"], type)["status"].str() == "True";
}

struct Condition {
  std::string_view type;
  bool holds = true;
  std::string_view reason;
  std::string message;
};

// Replaces the condition of this type, or adds it. The time changes with the status only.
void Set(Draft& conditions, Value before, const Condition& condition, WallTime now) {
  const Value old = FindCondition(before, condition.type);
  const std::string_view status = condition.holds ? "True" : "False";
  const bool is_same = old["status"].str() == status;
  Draft made = {{"type", condition.type},
                {"status", status},
                {"lastTransitionTime",
                 is_same ? std::string(old["lastTransitionTime"].str()) : api::FormatTime(now)},
                {"reason", condition.reason},
                {"message", condition.message}};
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions.at(i)["type"].str() == condition.type) {
      conditions.at(i) = std::move(made);
      return;
    }
  }
  conditions.Append(std::move(made));
}

Draft StatusWith(const api::Object& migration, const std::vector<Condition>& changes,
                 WallTime now) {
  const Value before = migration["status"];
  Draft status = before.is_object() ? Draft(before) : Draft::Object();
  status.KeepAlive(migration.tree());
  Draft& conditions = status["conditions"];
  if (!conditions.is_array()) conditions = Draft::Array();
  for (const Condition& change : changes) Set(conditions, before, change, now);
  return status;
}

std::string Progress(MigrationCounts counts) {
  std::string text = "The migration is running";
  if (counts.total == 0) return text;
  if (counts.left > 0) {
    return StrCat(text, ", ", counts.left, "/", counts.total, " objects not yet migrated");
  }
  return StrCat(text, ", ", counts.total, " objects verified migrated");
}

}  // namespace

std::string MigratedResource(const api::Object& migration) {
  const Value resource = migration["spec"]["resource"];
  return StrCat(resource["group"].str(), "/", resource["resource"].str());
}

bool HasEnded(const api::Object& migration) {
  return Holds(migration, kSucceeded) || Holds(migration, kFailed);
}

api::ObjectPtr ChooseMigration(const std::vector<api::ObjectPtr>& migrations) {
  api::ObjectPtr chosen;
  const auto rank = [](const api::Object& each) {
    return std::tuple(!Holds(each, kRunning), each["metadata"]["creationTimestamp"].str(),
                      each.name());
  };
  for (const api::ObjectPtr& each : migrations) {
    if (HasEnded(*each) || each->is_being_deleted()) continue;
    if (chosen == nullptr || rank(*each) < rank(*chosen)) chosen = each;
  }
  return chosen;
}

bool CanMigrate(const api::KindSchema& kind) {
  for (const std::string_view verb : {"update", "patch", "list"}) {
    if (std::ranges::find(kind.verbs, verb) == kind.verbs.end()) return false;
  }
  return true;
}

Draft StatusOfRunning(const api::Object& migration, std::int64_t resource_version, WallTime now) {
  Draft status = StatusWith(migration, {{kRunning, true, kRunningReason, Progress({})}}, now);
  status["resourceVersion"] = std::to_string(resource_version);
  return status;
}

Draft StatusOfAttempt(const api::Object& migration, MigrationCounts counts, const Error& error,
                      WallTime now) {
  return StatusWith(migration,
                    {{kRunning, true, kRunningReason,
                      StrCat(Progress(counts), "; transient error: ", error.message)}},
                    now);
}

Draft StatusOfSuccess(const api::Object& migration, WallTime now) {
  return StatusWith(
      migration,
      {{kRunning, false, "MigrationCompleted", std::string(kCompleted)},
       {kSucceeded, true, "StorageVersionMigrationSucceeded", std::string(kCompleted)}},
      now);
}

Draft StatusOfFailure(const api::Object& migration, std::string_view reason,
                      std::optional<MigrationCounts> counts, WallTime now) {
  std::string message = StrCat("migration encountered unhandled error: ", reason);
  if (counts) message = StrCat(counts->left, "/", counts->total, " not yet migrated. ", message);
  std::vector<Condition> changes;
  if (Holds(migration, kRunning)) {
    changes.push_back({kRunning, false, "MigrationCompleted", std::string(kCompleted)});
  }
  changes.push_back({kFailed, true, "StorageVersionMigrationFailed", std::move(message)});
  return StatusWith(migration, changes, now);
}

Draft DefinitionStatus(const api::Object& definition, const api::Object& migration,
                       DefinitionState state, WallTime now) {
  const std::int64_t generation = definition["metadata"]["generation"].integer();
  const Value old = FindCondition(definition["status"], kStorageMigrating);
  const bool is_running = state == DefinitionState::kRunning;
  // Somebody may have changed the stored version meanwhile.
  const bool is_unchanged = old["observedGeneration"].integer() == generation;
  std::string_view reason = kRunningReason;
  std::string message = StrCat("Migration ", migration.name(), " is running");
  if (state == DefinitionState::kSucceeded) {
    reason = "MigrationSucceeded";
    message = StrCat("The migration has succeeded",
                     is_unchanged ? " and the stored versions have been updated"
                                  : " but the stored versions have not been updated due to a "
                                    "generation mismatch");
  } else if (state == DefinitionState::kFailed) {
    reason = "MigrationFailed";
    message = "The migration has failed";
  }
  Draft conditions = Draft::Array();
  conditions.Append({{"type", kStorageMigrating},
                     {"status", is_running ? "True" : "False"},
                     {"lastTransitionTime", api::FormatTime(now)},
                     {"reason", reason},
                     {"message", message},
                     {"observedGeneration", generation}});
  Draft status = {{"conditions", std::move(conditions)}};
  if (state == DefinitionState::kSucceeded && is_unchanged) {
    for (const Value version : definition["spec"]["versions"].elements()) {
      if (!version["storage"].boolean()) continue;
      status["storedVersions"] = Draft::Array();
      status["storedVersions"].Append(version["name"].str());
    }
  }
  return {{"apiVersion", definition.api_version()},
          {"kind", definition.kind()},
          {"metadata",
           {{"name", definition.name()},
            {"resourceVersion", std::to_string(definition.resource_version())}}},
          {"status", std::move(status)}};
}

std::string RewritePatch(const api::KindSchema& kind, const api::Object& object) {
  const Draft patch = {
      {"apiVersion", kind.api_version()},
      {"kind", kind.kind},
      {"metadata", {{"resourceVersion", std::to_string(object.resource_version())}}}};
  return api::WriteJson(patch.Freeze()->root());
}

bool IsTransient(const Error& error) {
  switch (error.code) {
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kInternal:
    case ErrorCode::kCancelled:
    case ErrorCode::kExpired:  // a list that took too long
      return true;
    default:
      return false;
  }
}

}  // namespace drakkar::controllers
