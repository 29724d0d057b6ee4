#pragma once

#include <map>
#include <string_view>

namespace drakkar::vectors {

// Cases of the allocator vectors that we answer differently on purpose, and why. The list is exact:
// a listed case that agrees fails the test.
inline const std::map<std::string_view, std::string_view>& AllocatorDeviations() {
  static const std::map<std::string_view, std::string_view> kDeviations = {
      {"partitionable-devices-with-binding-conditions-and-taints-tolerated",
       "KEP-5007, preference: devices without binding conditions come first across and within "
       "pools; Kubernetes prefers whole pools"},
      {"list-attributes-distinct-constaint-with-empty-or-unknown-type",
       "the JSON of this case is ambiguous: device-1 had an empty list of versions, which is "
       "omitted, so that neither device has a value"},
  };
  return kDeviations;
}

}  // namespace drakkar::vectors
