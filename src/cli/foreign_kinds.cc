#include "cli/foreign_kinds.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::cli {
namespace {

constexpr Duration kRetryInterval = std::chrono::milliseconds(200);

}  // namespace

Result<ResourceSelection> ResolveSelection(const Arguments& arguments, Console& console,
                                           std::unique_ptr<Session>& session) {
  Result<ResourceSelection> own = ParseSelection(arguments.positionals());
  if (own.ok() || arguments.positionals().empty()) return own;
  if (session == nullptr) {
    Result<std::unique_ptr<Session>> opened = Session::Open(arguments, console);
    if (!opened.ok()) return own;
    session = std::move(*opened);
  }
  const Result<std::vector<const api::KindSchema*>> foreign = session->ForeignKinds();
  if (!foreign.ok()) return own;
  return ParseSelection(arguments.positionals(), *foreign);
}

Result<const api::KindSchema*> FindForeignKind(Session& session, std::string_view api_version,
                                               std::string_view kind, bool is_new) {
  const MonotonicTime deadline = session.clock().Monotonic() + kServedWithin;
  for (bool again = false;; again = true) {
    ASSIGN_OR_RETURN(const std::vector<const api::KindSchema*> kinds,
                     session.ForeignKinds(/*again=*/again));
    for (const api::KindSchema* each : kinds) {
      if (each->kind == kind && each->is_api_version(api_version)) return each;
    }
    // Our information may be older than the last manifest.
    if (again && (!is_new || session.clock().Monotonic() >= deadline)) break;
    if (again) session.Pause(kRetryInterval);
  }
  return NotFound(StrCat("no matches for kind ", Quote(kind), " in version ", Quote(api_version)));
}

}  // namespace drakkar::cli
