#pragma once

namespace drakkar::node {

// Labels that identify the pod of sandboxes and containers, as kubelets set them.
inline constexpr char kPodNameLabel[] = "io.kubernetes.pod.name";
inline constexpr char kPodNamespaceLabel[] = "io.kubernetes.pod.namespace";
inline constexpr char kPodUidLabel[] = "io.kubernetes.pod.uid";
inline constexpr char kContainerNameLabel[] = "io.kubernetes.container.name";

}  // namespace drakkar::node
