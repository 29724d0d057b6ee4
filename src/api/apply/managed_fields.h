#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/apply/field_set.h"
#include "api/meta/status.h"
#include "api/schema/schema.h"
#include "api/tree/draft.h"

// Who set which field: metadata.managedFields for creates, updates and server-side apply.
namespace drakkar::api {

// Entries of Updates beyond this many are merged, oldest first, into "ancient-changes".
constexpr std::size_t kMaxUpdateManagers = 10;

struct FieldManager {
  std::string_view manager;              // "" becomes "unknown"
  std::string_view subresource;          // "" or "status" ...
  std::string_view api_version;          // of the request
  const StructSchema* schema = nullptr;  // in that version
  std::string_view now;                  // RFC 3339
  // FieldsV1 of what this request cannot change; nobody comes to own it by it.
  std::string_view reset_fields = "{}";
  // The object in another version of its kind and that version's schema; null if there is none.
  // Only asked for managers that used other versions.
  std::function<std::pair<TreePtr, const StructSchema*>(Value object, std::string_view api_version)>
      convert;
};

// The entries after a create (`before` absent) or an update. Both objects are in the request's
// version; `before` carries the current entries, `after` those that the client sent: none or
// undecodable ones mean the current ones, one empty entry drops all. Absent: no entries.
Draft TrackUpdate(Value before, Value after, const FieldManager& by);

struct Applied {
  // The merged object with its entries, not yet in canonical form: nulls and zero values as given.
  TreePtr object;
  bool changed = false;  // besides managedFields
};
// Merges the configuration into `live` (absent: nothing exists yet). A Status says why not: 409
// with a cause per field somebody else owns, 400 or 500 for a configuration that makes no sense.
std::variant<Applied, Status> ApplyConfiguration(Value live, Value applied, bool force,
                                                 const FieldManager& by);

}  // namespace drakkar::api
