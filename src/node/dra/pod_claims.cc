#include "node/dra/pod_claims.h"

#include "api/meta/quantity.h"
#include "base/text/text.h"
#include "claims/pod_claims.h"

namespace drakkar::node {
namespace {

using api::Value;

std::string PodText(Value pod) {
  return Quote(StrCat(pod["metadata"]["namespace"].str(), "/", pod["metadata"]["name"].str()));
}

}  // namespace

Result<std::vector<PodClaim>> ListPodClaims(Value pod) {
  std::vector<PodClaim> listed;
  for (claims::PodClaim& claim : claims::ListPodClaims(pod)) {
    switch (claim.state) {
      case claims::PodClaim::State::kUnsupported:
        return InvalidArgument(StrCat("pod ", PodText(pod), ", spec.resourceClaim ",
                                      Quote(claim.entry),
                                      ": none of the supported fields are set"));
      case claims::PodClaim::State::kNotCreated:
        return FailedPrecondition(StrCat("pod ", PodText(pod), ": ResourceClaim not created yet"));
      case claims::PodClaim::State::kNotNeeded:
        break;
      case claims::PodClaim::State::kResolved:
        listed.push_back(
            {std::move(claim.entry), std::move(claim.claim_name), claim.from_template});
    }
  }
  const std::string_view extended = claims::ExtendedResourceClaim(pod);
  if (!extended.empty()) listed.push_back({"", std::string(extended), false});
  return listed;
}

std::vector<ContainerClaim> ListContainerClaims(Value pod, Value container) {
  std::vector<ContainerClaim> listed;
  for (Value entry : container["resources"]["claims"].elements()) {
    const std::string_view name = entry["name"].str();
    if (auto claim = claims::FindClaimName(pod, name)) {
      listed.push_back({std::string(name), std::move(*claim), std::string(entry["request"].str())});
    }
  }
  const Value extended = pod["status"]["extendedResourceClaimStatus"];
  for (Value mapping : extended["requestMappings"].elements()) {
    if (mapping["containerName"].str() != container["name"].str()) continue;
    const std::string_view resource = mapping["resourceName"].str();
    auto amount = api::Quantity::Parse(container["resources"]["requests"].Entry(resource).str());
    if (!amount.ok() || amount->IsZero()) continue;
    listed.push_back({"", std::string(claims::ExtendedResourceClaim(pod)),
                      std::string(mapping["requestName"].str())});
  }
  return listed;
}

}  // namespace drakkar::node
