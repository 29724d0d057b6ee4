#pragma once

#include <optional>
#include <vector>

#include "answers/why/why.h"
#include "api/meta/object.h"

namespace drakkar::answers {

// The binding conditions of an allocated claim that are not True yet, and failure conditions that
// are. `timeout` counts from the allocation.
std::vector<ConditionWait> FindConditionWaits(const api::Object& claim, Duration timeout);

// Why an object that is being deleted still exists, one entry per finalizer. Empty if it is not
// being deleted.
std::vector<DeletionWait> FindDeletionWaits(std::string_view what, const api::Object& object,
                                            const Snapshot& snapshot);

// Unprepared claims of a pod that has a node but no running container. `events` are the pod's.
std::vector<PreparationWait> FindPreparationWaits(const api::Object& pod, const Objects& claims,
                                                  const Objects& events);

}  // namespace drakkar::answers
