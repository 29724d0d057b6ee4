#pragma once

#include <string>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::node {

// A claim of a pod: its name in the spec (empty for the claim behind extended resources), the name
// of the object, and whether it was created from a template.
struct PodClaim {
  std::string pod_claim_name;
  std::string claim_name;
  bool from_template = false;
};

// All claims of a pod, whether or not a container refers to them. Entries that turned out not to
// need a claim (a status without a name) are omitted. Fails while a claim has not been created.
Result<std::vector<PodClaim>> ListPodClaims(api::Value pod);

// A claim reference of a container: object name of the claim, and the request, or "" for all
// requests.
struct ContainerClaim {
  std::string pod_claim_name;
  std::string claim_name;
  std::string request;
};
// In the container's order; unresolved claims are omitted.
std::vector<ContainerClaim> ListContainerClaims(api::Value pod, api::Value container);

}  // namespace drakkar::node
