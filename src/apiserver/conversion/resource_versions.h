#pragma once

#include <string_view>

#include "api/tree/value.h"

// Conversion between the versions of resource.k8s.io, by rewriting the tree. v1 is the hub. v1beta2
// and v1alpha3 differ in name only; v1beta1 has requests without "exactly" and devices with
// "basic".
namespace drakkar::apiserver {

// For objects with an apiVersion of resource.k8s.io; others are returned unchanged. Kinds that v1
// does not have (ResourcePoolStatusRequest) keep their version.
api::TreePtr ToHubVersion(const api::TreePtr& object);
// `version` is "v1", "v1beta2", "v1beta1" or "v1alpha3"; `object` is in the hub's version.
api::TreePtr FromHubVersion(const api::TreePtr& object, std::string_view version);

}  // namespace drakkar::apiserver
