#include "claims/pod_claims.h"

namespace drakkar::claims {

using api::Value;
using State = PodClaim::State;

PodClaim ResolvePodClaim(Value pod, Value entry) {
  PodClaim claim{.entry = std::string(entry["name"].str())};
  if (const std::string_view name = entry["resourceClaimName"].str(); !name.empty()) {
    claim.claim_name = name;
    claim.state = State::kResolved;
    return claim;
  }
  if (entry["resourceClaimTemplateName"].str().empty()) return claim;
  claim.from_template = true;
  claim.state = State::kNotCreated;
  for (Value status : pod["status"]["resourceClaimStatuses"].elements()) {
    if (status["name"].str() != claim.entry) continue;
    claim.claim_name = status["resourceClaimName"].str();
    claim.state = claim.claim_name.empty() ? State::kNotNeeded : State::kResolved;
    break;
  }
  return claim;
}

std::vector<PodClaim> ListPodClaims(Value pod) {
  std::vector<PodClaim> claims;
  const Value entries = pod["spec"]["resourceClaims"];
  claims.reserve(entries.size());
  for (Value entry : entries.elements()) claims.push_back(ResolvePodClaim(pod, entry));
  return claims;
}

std::optional<std::string> FindClaimName(Value pod, std::string_view name) {
  for (Value entry : pod["spec"]["resourceClaims"].elements()) {
    if (entry["name"].str() != name) continue;
    PodClaim claim = ResolvePodClaim(pod, entry);
    if (claim.state == State::kResolved) return std::move(claim.claim_name);
  }
  return std::nullopt;
}

std::string_view ExtendedResourceClaim(Value pod) {
  return pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"].str();
}

std::vector<std::string> ListClaimNames(Value pod) {
  std::vector<std::string> names;
  for (PodClaim& claim : ListPodClaims(pod)) {
    if (claim.state == State::kResolved) names.push_back(std::move(claim.claim_name));
  }
  if (const std::string_view name = ExtendedResourceClaim(pod); !name.empty()) {
    names.emplace_back(name);
  }
  return names;
}

}  // namespace drakkar::claims
