#pragma once

#include <string_view>

#include "api/scheme/scheme.h"
#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// The fields that a request for the object (subresource "") or its status cannot change, as
// FieldsV1. Such a request does not make anyone their manager.
inline std::string_view ResetFieldsFor(const api::KindSchema& kind, const Strategy& strategy,
                                       std::string_view subresource) {
  if (subresource == "status") {
    return strategy.StatusUpdateKeepsMetadata()
               ? R"({"f:spec":{},"f:metadata":{"f:deletionTimestamp":{},"f:ownerReferences":{}}})"
               : R"({"f:spec":{},"f:metadata":{}})";
  }
  if (subresource.empty()) {
    for (std::string_view each : kind.subresources) {
      if (each == "status") return R"({"f:status":{}})";
    }
  }
  return "{}";
}

}  // namespace drakkar::apiserver
