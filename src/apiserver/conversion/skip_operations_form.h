#pragma once

#include "api/meta/object.h"

namespace drakkar::apiserver {

// The object with every skipNodeOperations in the form of a list, which is all that Go clients can
// decode: true becomes ["*"], false is left out. The object itself where nothing is to be changed.
// Made once and kept with the object.
api::ObjectPtr WithSkipOperationsAsList(const api::ObjectPtr& object);

}  // namespace drakkar::apiserver
