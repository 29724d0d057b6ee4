#pragma once

#include <string>
#include <vector>

#include "base/result/result.h"
#include "node/runtime/usage.h"

namespace drakkar::node::cri {

inline constexpr char kListPodSandboxStats[] = "/runtime.v1.RuntimeService/ListPodSandboxStats";
inline constexpr char kListContainerStats[] = "/runtime.v1.RuntimeService/ListContainerStats";
inline constexpr char kImageFsInfo[] = "/runtime.v1.ImageService/ImageFsInfo";

// Only pods with Kubernetes' label for a pod's uid. Without start times and images, which the
// messages lack.
Result<std::vector<PodUsage>> DecodeListPodSandboxStats(const std::string& bytes);
Result<std::vector<ContainerUsage>> DecodeListContainerStats(const std::string& bytes);

struct ImageFsInfo {
  StoreUsage images;
  StoreUsage containers;
};
Result<ImageFsInfo> DecodeImageFsInfo(const std::string& bytes);

}  // namespace drakkar::node::cri
