#pragma once

#include <string_view>

#include "api/tree/draft.h"
#include "base/env/random.h"

namespace drakkar::apiserver {

// Random objects of resource.k8s.io/v1 that are valid with every gate on. Many of them together use
// every field of the schema. The same seed gives the same objects.
class RandomResources {
 public:
  explicit RandomResources(Random& random) : random_(random) {}

  // "ResourceSlice", "ResourceClaim" (with status), "ResourceClaimTemplate", "DeviceClass" or
  // "DeviceTaintRule".
  api::Draft Make(std::string_view kind);

 private:
  bool Maybe() { return random_.Next() % 2 == 0; }
  int Below(int bound) { return static_cast<int>(random_.Next() % static_cast<unsigned>(bound)); }

  api::Draft Metadata();
  api::Draft NodeSelector();
  api::Draft Slice();
  api::Draft Device(int index, bool selects_node);
  api::Draft Attribute();
  void AddCapacity(api::Draft& device);
  void AddNode(api::Draft& owner);
  void AddBindingConditions(api::Draft& owner);
  api::Draft Taint();
  api::Draft Toleration();
  api::Draft SkipOperations();
  api::Draft Counters();
  api::Draft Selectors();
  api::Draft Opaque();
  // What an exact request and an alternative have in common.
  api::Draft Request();
  api::Draft ClaimSpec();
  api::Draft ClaimStatus(api::Draft& spec);
  api::Draft Condition(std::string_view type);

  Random& random_;
};

}  // namespace drakkar::apiserver
