#pragma once

#include <string>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::node {

// A claim a pod uses: the name in its spec (empty for the claim behind extended resources), the
// name of the object, and whether it was made from a template.
struct PodClaim {
  std::string pod_claim_name;
  std::string claim_name;
  bool from_template = false;
};

// All claims of a pod, whether a container refers to them or not. Entries whose claim was not
// needed (a status without a name) are left out. Fails while a claim is not created yet.
Result<std::vector<PodClaim>> ListPodClaims(api::Value pod);

// What one container names: object name of the claim, and the request, or "" for all of them.
struct ContainerClaim {
  std::string pod_claim_name;
  std::string claim_name;
  std::string request;
};
// In the container's order; claims that are not resolved are left out.
std::vector<ContainerClaim> ListContainerClaims(api::Value pod, api::Value container);

}  // namespace drakkar::node
