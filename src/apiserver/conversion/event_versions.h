#pragma once

#include <string_view>

#include "api/tree/value.h"

// Events of core/v1 (the storage version) and of events.k8s.io/v1: the same object with two sets of
// field names.
namespace drakkar::apiserver {

api::TreePtr EventToCore(const api::TreePtr& event);
api::TreePtr EventFromCore(const api::TreePtr& event);
// The name in core/v1 of a field of events.k8s.io, and the reverse. Common names are returned
// unchanged.
std::string_view CoreEventField(std::string_view name);
std::string_view NamedEventField(std::string_view name);

}  // namespace drakkar::apiserver
