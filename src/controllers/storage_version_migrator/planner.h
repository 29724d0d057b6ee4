#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/env/clock.h"
#include "base/result/error.h"

// What happens to StorageVersionMigrations. Pure functions.
namespace drakkar::controllers {

// "group/resource" of what a migration rewrites.
std::string MigratedResource(const api::Object& migration);

// The migration of a resource that has to be worked on next: the one that is running, or else the
// oldest that has not ended. Null if there is none.
api::ObjectPtr ChooseMigration(const std::vector<api::ObjectPtr>& migrations);

bool HasEnded(const api::Object& migration);  // Succeeded or Failed

// The verbs that a resource needs so that its objects can be rewritten, as messages list them.
bool CanMigrate(const api::KindSchema& kind);

// Objects of the resource: how many there are and how many have not been rewritten yet.
struct MigrationCounts {
  std::size_t left = 0;
  std::size_t total = 0;
};

// The new status: with the condition Running and the version up to which objects are rewritten.
api::Draft StatusOfRunning(const api::Object& migration, std::int64_t resource_version,
                           WallTime now);
// After an attempt that will be repeated.
api::Draft StatusOfAttempt(const api::Object& migration, MigrationCounts counts, const Error& error,
                           WallTime now);
api::Draft StatusOfSuccess(const api::Object& migration, WallTime now);
// `counts` is missing if no object was looked at.
api::Draft StatusOfFailure(const api::Object& migration, std::string_view reason,
                           std::optional<MigrationCounts> counts, WallTime now);

// What CustomResourceDefinitions say about the migration of their objects, as a body to apply to
// their status.
enum class DefinitionState { kRunning, kSucceeded, kFailed };
api::Draft DefinitionStatus(const api::Object& definition, const api::Object& migration,
                            DefinitionState state, WallTime now);

// The patch that has an object written again, unless it has changed since it was listed.
std::string RewritePatch(const api::KindSchema& kind, const api::Object& object);

// Whether an attempt that ended with this error may succeed later.
bool IsTransient(const Error& error);

}  // namespace drakkar::controllers
