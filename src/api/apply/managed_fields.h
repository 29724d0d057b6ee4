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

// Field ownership: metadata.managedFields for creates, updates and server-side apply.
namespace drakkar::api {

// Update entries beyond this number are merged, oldest first, into "ancient-changes".
constexpr std::size_t kMaxUpdateManagers = 10;

struct FieldManager {
  std::string_view manager;              // "" becomes "unknown"
  std::string_view subresource;          // "" or "status" ...
  std::string_view api_version;          // version of the request
  const StructSchema* schema = nullptr;  // schema in that version
  std::string_view now;                  // RFC 3339
  // FieldsV1 of fields that this request cannot change; it never gains ownership of them.
  std::string_view reset_fields = "{}";
  // Converts the object to another version of its kind and returns that version's schema; null if
  // there is none. Called only for managers that used other versions.
  std::function<std::pair<TreePtr, const StructSchema*>(Value object, std::string_view api_version)>
      convert;
};

// The entries after a create (`before` absent) or an update. Both objects are in the request's
// version. `before` carries the current entries, `after` those the client sent: none or invalid
// ones mean the current ones, a single empty entry removes all. Absent: no entries.
Draft TrackUpdate(Value before, Value after, const FieldManager& by);

struct Applied {
  // The merged object with its entries. Not canonical yet: nulls and zero values are as given.
  TreePtr object;
  bool changed = false;  // apart from managedFields
};
// Merges the configuration into `live` (absent: a create). On failure returns a Status: 409 with
// one cause per field that somebody else owns, 400 or 500 for an invalid configuration.
std::variant<Applied, Status> ApplyConfiguration(Value live, Value applied, bool force,
                                                 const FieldManager& by);

}  // namespace drakkar::api
