#pragma once

#include <string_view>

#include "api/tree/value.h"

// Events of core/v1 (what is stored) and of events.k8s.io/v1: one thing with two sets of names.
namespace drakkar::apiserver {

api::TreePtr EventToCore(const api::TreePtr& event);
api::TreePtr EventFromCore(const api::TreePtr& event);
// The name core/v1 has for a field of events.k8s.io, and the other way; names that both share come
// back as they are.
std::string_view CoreEventField(std::string_view name);
std::string_view NamedEventField(std::string_view name);

}  // namespace drakkar::apiserver
