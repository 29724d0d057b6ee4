#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/meta/object.h"
#include "apiserver/request/decision.h"
#include "apiserver/request/reinvocation.h"
#include "apiserver/request/request.h"
#include "base/env/clock.h"
#include "base/env/random.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::apiserver {

// What the rules of a kind may read besides the object itself.
struct StrategyContext {
  const Clock& clock;
  Random& random;
  const FeatureGates& gates;
  const UserInfo& user;
  Verb verb = Verb::kCreate;
  // The current object of any kind, by group, plural and "namespace/name"; null if there is none.
  std::function<api::ObjectPtr(std::string_view group, std::string_view plural,
                               const std::string& key)>
      lookup;
  // Asks the authorizer about a permission beyond the request's own.
  std::function<Decision(std::string_view verb, std::string_view group, std::string_view resource,
                         std::string_view subresource, std::string_view namespace_,
                         std::string_view name)>
      authorize;
  // The first object of a resource, by name, that `matches`; null if there is none.
  std::function<api::ObjectPtr(std::string_view group, std::string_view plural,
                               const std::function<bool(const api::Object&)>& matches)>
      find_first = {};
  // Calls `each` for every object of a resource in a namespace, by name.
  std::function<void(std::string_view group, std::string_view plural, std::string_view namespace_,
                     const std::function<void(const api::ObjectPtr&)>& each)>
      visit = {};
  // The client's API version; objects here are always in their storage version.
  std::string_view version = "v1";
  std::string_view group = {};  // the client's API group
  // For the steps of mutating admission; null outside of it.
  Reinvocation* reinvocation = nullptr;
  const AcceptChanged* accept_changed = nullptr;
};

}  // namespace drakkar::apiserver
