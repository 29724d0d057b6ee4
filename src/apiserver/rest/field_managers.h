#pragma once

#include <optional>
#include <string>

#include "api/tree/draft.h"
#include "apiserver/registry/strategy.h"
#include "apiserver/request/request.h"

// metadata.managedFields and server-side apply, as the verbs use them.
namespace drakkar::apiserver {

// Who the request writes for: its fieldManager, else the start of its user agent.
std::string ManagerOf(const Request& request);

// Before `object` is viewed for TrackManagedFields: entries that stay as the client sent them are
// borrowed, so they must not lie in the part of the draft that is replaced.
void PinSentEntries(api::Draft& object);

// Sets the entries of `object` after a create (`before` null) or an update. `after` is the object
// as it will be stored, but for its entries; a view of `object` is not valid any more afterwards.
void TrackManagedFields(const api::KindSchema& kind, const Strategy& strategy,
                        const Request& request, const api::Object* before, api::Value after,
                        WallTime now, api::Draft& object);

// What the configuration in the request's body makes of the current object (null: there is none),
// in the request's version, entries included.
std::optional<Failure> BuildApply(const api::KindSchema& kind, const Strategy& strategy,
                                  const Request& request, const api::Object* before, WallTime now,
                                  api::TreePtr& asked, std::vector<std::string>& warnings);

// Options that only make sense together: apply needs a manager, force needs apply.
std::optional<Failure> CheckPatchOptions(const Request& request);

}  // namespace drakkar::apiserver
