#pragma once

#include "api/meta/object.h"

namespace drakkar::apiserver {

// The object with every skipNodeOperations as a list, the only form that Go clients can decode:
// true becomes ["*"], false is dropped. Returns the object itself if nothing changes. Built once
// and kept with the object.
api::ObjectPtr WithSkipOperationsAsList(const api::ObjectPtr& object);

}  // namespace drakkar::apiserver
