#pragma once

#include <memory>
#include <string_view>

#include "base/result/result.h"
#include "cli/command.h"
#include "cli/resource_names.h"
#include "cli/session.h"

namespace drakkar::cli {

// ParseSelection. Types that our schema does not have (custom resources, those of other servers)
// are looked up at the server; `session` is opened for that. If there is no server to ask, the
// error is that of the schema.
Result<ResourceSelection> ResolveSelection(const Arguments& arguments, Console& console,
                                           std::unique_ptr<Session>& session);

// The kind of a manifest, which the server may have learned a moment ago: a definition in the same
// manifests takes a moment to be served. Waits up to kServedWithin for that if `is_new`.
constexpr Duration kServedWithin = std::chrono::seconds(10);
Result<const api::KindSchema*> FindForeignKind(Session& session, std::string_view api_version,
                                               std::string_view kind, bool is_new);

}  // namespace drakkar::cli
