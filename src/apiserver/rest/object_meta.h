#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "apiserver/registry/strategy.h"
#include "apiserver/request/request.h"

// What the verbs do to metadata, for all kinds.
namespace drakkar::apiserver {

// Sets apiVersion, kind and namespace and clears fields that the server owns. Rejects a
// resourceVersion and a namespace other than the request's.
std::optional<Failure> PrepareMetaForCreate(const api::KindSchema& kind, const Request& request,
                                            api::Draft& object);

// Checks name, namespace, UID and version against the request and the current object, and restores
// fields that clients cannot change.
std::optional<Failure> PrepareMetaForUpdate(const api::KindSchema& kind, const Strategy& strategy,
                                            const Request& request, const api::Object& before,
                                            api::Draft& object);

// +1 when anything outside metadata and status has changed (and annotations, where they count).
void UpdateGeneration(const Strategy& strategy, api::Value before, api::Draft& object);

// The rules of validation/metadata.h, for a kind.
api::FieldErrors ValidateMeta(const api::KindSchema& kind, const Strategy& strategy,
                              api::Value object);
api::FieldErrors ValidateMetaUpdate(api::Value object, api::Value before);

// Ignoring resourceVersion and managedFields.
bool EqualButForVersion(api::Value a, api::Value b);
// Marked for deletion, without finalizers and without a running grace period.
bool IsReadyToGo(const Strategy& strategy, api::Value object);

std::optional<Failure> CheckPreconditions(const Request& request, const api::Object& object);

enum class DeletionPlan {
  kNow,        // delete the object
  kMark,       // update it: the draft has deletionTimestamp and finalizers
  kUnchanged,  // it is already being deleted and nothing changes
};
DeletionPlan PlanDeletion(const Strategy& strategy, const Request& request,
                          const api::Object& before, WallTime now, api::Draft& object);

// POST pods/NAME/binding: binds the pod to the node, once.
std::optional<Failure> ApplyBinding(const api::KindSchema& kind, const Request& request,
                                    const api::Object& before, WallTime now, api::Draft& object);

// `prefix` with five random characters, truncated to 63 characters.
std::string GenerateName(std::string_view prefix, Random& random);

api::TreePtr SuccessStatus(const api::KindSchema& kind, const api::Object& object);

}  // namespace drakkar::apiserver
