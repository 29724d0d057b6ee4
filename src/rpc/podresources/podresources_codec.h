#pragma once

#include <string>
#include <vector>

#include "rpc/podresources/podresources.h"

namespace drakkar::rpc::podresources {

inline constexpr char kListMethod[] = "/v1.PodResourcesLister/List";
inline constexpr char kAllocatableMethod[] = "/v1.PodResourcesLister/GetAllocatableResources";
inline constexpr char kGetMethod[] = "/v1.PodResourcesLister/Get";

std::string EncodeList(const std::vector<PodResources>& pods);
Result<std::vector<PodResources>> DecodeList(const std::string& bytes);
std::string EncodeAllocatable(const AllocatableResources& resources);
Result<AllocatableResources> DecodeAllocatable(const std::string& bytes);
std::string EncodeGetRequest(const PodReference& pod);
Result<PodReference> DecodeGetRequest(const std::string& bytes);
std::string EncodeGetResponse(const PodResources& pod);
Result<PodResources> DecodeGetResponse(const std::string& bytes);

}  // namespace drakkar::rpc::podresources
