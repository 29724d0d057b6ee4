#include "node/dra/pod_claims.h"

#include "api/meta/quantity.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

using api::Value;

std::string PodText(Value pod) {
  return Quote(StrCat(pod["metadata"]["namespace"].str(), "/", pod["metadata"]["name"].str()));
}

Value FindStatus(Value pod, std::string_view name) {
  for (Value status : pod["status"]["resourceClaimStatuses"].elements()) {
    if (status["name"].str() == name) return status;
  }
  return Value();
}

}  // namespace

Result<std::vector<PodClaim>> ListPodClaims(Value pod) {
  std::vector<PodClaim> claims;
  for (Value entry : pod["spec"]["resourceClaims"].elements()) {
    const std::string name(entry["name"].str());
    if (!entry["resourceClaimName"].str().empty()) {
      claims.push_back({name, std::string(entry["resourceClaimName"].str()), false});
      continue;
    }
    if (entry["resourceClaimTemplateName"].str().empty()) {
      return InvalidArgument(StrCat("pod ", PodText(pod), ", spec.resourceClaim ", Quote(name),
                                    ": none of the supported fields are set"));
    }
    const Value status = FindStatus(pod, name);
    if (!status.exists()) {
      return FailedPrecondition(StrCat("pod ", PodText(pod), ": ResourceClaim not created yet"));
    }
    const std::string_view claim = status["resourceClaimName"].str();
    if (!claim.empty()) claims.push_back({name, std::string(claim), true});
  }
  const std::string_view extended =
      pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"].str();
  if (!extended.empty()) claims.push_back({"", std::string(extended), false});
  return claims;
}

std::optional<std::string> FindClaimName(Value pod, std::string_view pod_claim_name) {
  for (Value entry : pod["spec"]["resourceClaims"].elements()) {
    if (entry["name"].str() != pod_claim_name) continue;
    std::string_view name = entry["resourceClaimName"].str();
    if (name.empty()) name = FindStatus(pod, pod_claim_name)["resourceClaimName"].str();
    if (!name.empty()) return std::string(name);
  }
  return std::nullopt;
}

std::string_view BaseRequest(std::string_view request) {
  return request.substr(0, request.find('/'));
}

std::vector<ContainerClaim> ListContainerClaims(Value pod, Value container) {
  std::vector<ContainerClaim> claims;
  for (Value entry : container["resources"]["claims"].elements()) {
    const std::string_view name = entry["name"].str();
    if (auto claim = FindClaimName(pod, name)) {
      claims.push_back({std::string(name), std::move(*claim), std::string(entry["request"].str())});
    }
  }
  const Value extended = pod["status"]["extendedResourceClaimStatus"];
  for (Value mapping : extended["requestMappings"].elements()) {
    if (mapping["containerName"].str() != container["name"].str()) continue;
    const std::string_view resource = mapping["resourceName"].str();
    auto amount = api::Quantity::Parse(container["resources"]["requests"].Entry(resource).str());
    if (!amount.ok() || amount->IsZero()) continue;
    claims.push_back({"", std::string(extended["resourceClaimName"].str()),
                      std::string(mapping["requestName"].str())});
  }
  return claims;
}

}  // namespace drakkar::node
