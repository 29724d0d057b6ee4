#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::claims {

// An entry of a pod's spec.resourceClaims and the ResourceClaim it resolves to.
struct PodClaim {
  enum class State : std::uint8_t {
    kResolved,     // claim_name is set
    kNotCreated,   // the claim controller has not recorded the template's claim yet
    kNotNeeded,    // the claim controller recorded that the pod needs no claim for this entry
    kUnsupported,  // the entry names neither a claim nor a template
  };
  std::string entry;       // the entry's name in the pod
  std::string claim_name;  // in the pod's namespace
  State state = State::kUnsupported;
  bool from_template = false;

  bool operator==(const PodClaim&) const = default;
};

// `entry` is one of the pod's spec.resourceClaims.
PodClaim ResolvePodClaim(api::Value pod, api::Value entry);

// All entries in the order of the spec, whether a container refers to them or not. The claim behind
// extended resources is not among them.
std::vector<PodClaim> ListPodClaims(api::Value pod);

// The claim that the entry of this name resolves to, if there is one yet.
std::optional<std::string> FindClaimName(api::Value pod, std::string_view entry);

// The claim that the scheduler made for the pod's extended resources; "" if there is none.
std::string_view ExtendedResourceClaim(api::Value pod);

// Every known claim that the pod uses, including the one behind extended resources.
std::vector<std::string> ListClaimNames(api::Value pod);

}  // namespace drakkar::claims
