#pragma once

#include <map>
#include <string_view>

namespace drakkar::vectors {

// Cases of the allocator vectors in which our answer differs on purpose, and why. The list is
// exact: a listed case that agrees fails the test.
inline const std::map<std::string_view, std::string_view>& AllocatorDeviations() {
  static const std::map<std::string_view, std::string_view> kDeviations = {
      {"partitionable-devices-with-binding-conditions-and-taints-tolerated",
       "KEP-5007, preference: devices without binding conditions come first over all pools and "
       "within them; Kubernetes prefers whole pools"},
      {"list-attributes-distinct-constaint-with-empty-or-unknown-type",
       "the case cannot be told from its JSON: device-1 had an empty list of versions, which is "
       "left out, so that both devices have no value at all"},
  };
  return kDeviations;
}

}  // namespace drakkar::vectors
