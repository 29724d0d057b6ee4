#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "apiserver/registry/strategy.h"
#include "apiserver/request/request.h"

// What the verbs do to metadata, the same for every kind.
namespace drakkar::apiserver {

// Sets apiVersion, kind and namespace, clears what the server owns. Refuses a namespace that is not
// the request's and a resourceVersion.
std::optional<Failure> PrepareMetaForCreate(const api::KindSchema& kind, const Request& request,
                                            api::Draft& object);

// Checks name, namespace, uid and version against the request and the current object; restores what
// clients cannot change.
std::optional<Failure> PrepareMetaForUpdate(const api::KindSchema& kind, const Strategy& strategy,
                                            const Request& request, const api::Object& before,
                                            api::Draft& object);

// +1 when anything outside metadata and status has changed (and annotations, where they count).
void UpdateGeneration(const Strategy& strategy, api::Value before, api::Draft& object);

// The rules of validation/metadata.h, for a kind.
api::FieldErrors ValidateMeta(const api::KindSchema& kind, const Strategy& strategy,
                              api::Value object);
api::FieldErrors ValidateMetaUpdate(api::Value object, api::Value before);

// But for resourceVersion and managedFields.
bool EqualButForVersion(api::Value a, api::Value b);
// Being deleted, no finalizer left, no grace period running.
bool IsReadyToGo(const Strategy& strategy, api::Value object);

std::optional<Failure> CheckPreconditions(const Request& request, const api::Object& object);

enum class DeletionPlan {
  kNow,        // remove the object
  kMark,       // keep it, changed: the draft has deletionTimestamp and finalizers
  kUnchanged,  // it is already on its way and nothing is to be changed
};
DeletionPlan PlanDeletion(const Strategy& strategy, const Request& request,
                          const api::Object& before, WallTime now, api::Draft& object);

// POST pods/NAME/binding: puts the pod on the node, once.
std::optional<Failure> ApplyBinding(const api::KindSchema& kind, const Request& request,
                                    const api::Object& before, WallTime now, api::Draft& object);

// "prefix" with five random characters, cut so that the name stays within 63.
std::string GenerateName(std::string_view prefix, Random& random);

api::TreePtr SuccessStatus(const api::KindSchema& kind, const api::Object& object);

}  // namespace drakkar::apiserver
