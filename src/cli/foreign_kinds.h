#pragma once

#include <memory>
#include <string_view>

#include "base/result/result.h"
#include "cli/command.h"
#include "cli/resource_names.h"
#include "cli/session.h"

namespace drakkar::cli {

// Like ParseSelection, but types that are not in our schema (custom resources, those of other
// servers) are looked up on the server, for which `session` is opened. If there is no server to
// ask, the error is that of the schema.
Result<ResourceSelection> ResolveSelection(const Arguments& arguments, Console& console,
                                           std::unique_ptr<Session>& session);

// The kind of a manifest, which the server may have learned only just now: a definition in the same
// manifests is not served immediately. Waits for it up to kServedWithin if `is_new`.
constexpr Duration kServedWithin = std::chrono::seconds(10);
Result<const api::KindSchema*> FindForeignKind(Session& session, std::string_view api_version,
                                               std::string_view kind, bool is_new);

}  // namespace drakkar::cli
