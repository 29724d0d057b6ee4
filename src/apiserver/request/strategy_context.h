#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/meta/object.h"
#include "apiserver/request/decision.h"
#include "apiserver/request/request.h"
#include "base/env/clock.h"
#include "base/env/random.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::apiserver {

// What the rules of a kind may look at besides the object itself.
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
  // The first object of a resource, in the order of names, that `matches`; null if none does.
  std::function<api::ObjectPtr(std::string_view group, std::string_view plural,
                               const std::function<bool(const api::Object&)>& matches)>
      find_first = {};
  // Each object of a resource in a namespace, in the order of names.
  std::function<void(std::string_view group, std::string_view plural, std::string_view namespace_,
                     const std::function<void(const api::ObjectPtr&)>& each)>
      visit = {};
  // The API version the client speaks; objects here are always in the version they are stored in.
  std::string_view version = "v1";
  std::string_view group = {};  // likewise
};

}  // namespace drakkar::apiserver
