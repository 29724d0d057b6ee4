#pragma once

#include <optional>
#include <string>

#include "api/tree/draft.h"
#include "apiserver/registry/strategy.h"
#include "apiserver/request/request.h"

// metadata.managedFields and server-side apply for the verbs.
namespace drakkar::apiserver {

// The request's field manager: its fieldManager, or the beginning of its user agent.
std::string ManagerOf(const Request& request);

// Call this before `object` is viewed for TrackManagedFields. Entries that stay as the client sent
// them are borrowed, so they must not be in the part of the draft that is replaced.
void PinSentEntries(api::Draft& object);

// Sets the entries of `object` after a create (`before` is null) or an update. `after` is the
// object as it will be stored, apart from its entries. Views of `object` are invalid afterwards.
void TrackManagedFields(const api::KindSchema& kind, const Strategy& strategy,
                        const Request& request, const api::Object* before, api::Value after,
                        WallTime now, api::Draft& object);

// The configuration in the body of an apply request.
std::optional<Failure> ParseApplied(const Request& request, api::TreePtr& applied,
                                    std::vector<std::string>& warnings);

// Applies the configuration in the request's body to the current object (null if there is none), in
// the request's version, and updates the entries.
std::optional<Failure> BuildApply(const api::KindSchema& kind, const Strategy& strategy,
                                  const Request& request, const api::Object* before, WallTime now,
                                  api::TreePtr& asked, std::vector<std::string>& warnings);

// Options that depend on each other: apply needs a manager, force needs apply.
std::optional<Failure> CheckPatchOptions(const Request& request);

}  // namespace drakkar::apiserver
