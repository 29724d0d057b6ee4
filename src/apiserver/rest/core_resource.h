#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/scheme/scheme.h"
#include "apiserver/registry/unattended.h"
#include "apiserver/rest/core.h"
#include "apiserver/watch/stored_object.h"
#include "base/text/text.h"

// Shared by core.cc, core_read.cc and core_write.cc only.
namespace drakkar::apiserver {

struct Core::Resource {
  explicit Resource(WatchCache::Holds holds) : cache(holds) {}

  const api::KindSchema* kind = nullptr;  // in the version it is stored in
  const Strategy* strategy = nullptr;
  std::vector<const Unattended*> unattended;  // empty if a controller acts on its objects
  std::string prefix;                         // of its keys in the store
  Duration time_to_live = Duration(0);        // 0: objects do not expire
  bool is_served = true;                      // a custom resource whose definition is gone is not
  bool is_terminating = false;                // its definition is being deleted
  WatchCache cache;
};

// The key of an object in its resource's cache, and after its prefix in the store.
inline std::string KeyOf(std::string_view namespace_, std::string_view name) {
  std::string key;
  key.reserve(namespace_.size() + 1 + name.size());
  if (!namespace_.empty()) {
    key += namespace_;
    key += '/';
  }
  key += name;
  return key;
}

// Whether responses are converted to the version of the request. Custom resources may be stored in
// a version that was the storage version earlier.
template <typename Resource>
bool IsConverted(const api::KindSchema& kind, const Resource& resource) {
  return &kind != resource.kind || kind.family != nullptr;
}

inline bool HasSubresource(const api::KindSchema& kind, std::string_view name) {
  for (std::string_view each : kind.subresources) {
    if (each == name) return true;
  }
  return false;
}

}  // namespace drakkar::apiserver
