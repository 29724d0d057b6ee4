#pragma once

#include <string_view>

// Annotations that more than one component reads.
namespace drakkar::api {

// What `kubectl apply` sent last.
inline constexpr std::string_view kLastAppliedAnnotation =
    "kubectl.kubernetes.io/last-applied-configuration";
// On a mirror pod: the API's copy of a pod that its node runs from a file.
inline constexpr std::string_view kMirrorAnnotation = "kubernetes.io/config.mirror";

}  // namespace drakkar::api
