#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "allocator/features.h"
#include "allocator/request/plan.h"
#include "allocator/view/interner.h"
#include "allocator/view/shape_table.h"
#include "base/result/result.h"
#include "device/claim.h"
#include "device/expression.h"

namespace drakkar::allocator {

// Finds a device class by name, or fails with a reason that the caller can show.
using ClassLookup =
    std::function<Result<std::shared_ptr<const device::DeviceClass>>(std::string_view name)>;

// The claims of one pod that have no allocation yet, checked and ready for the search. Made by
// PlanCache. Usable on every node, as long as the allocator exists and classes do not change.
struct Problem {
  std::vector<std::shared_ptr<const device::Claim>> claims;
  // One for each alternative, in the order of claims, requests and alternatives.
  std::vector<std::shared_ptr<const device::DeviceClass>> classes;

  // The claim's name as printed in errors.
  std::string ClaimName(std::size_t claim) const { return claims[claim]->ToString(); }

  // The error in the claims, reported where Kubernetes would report it: after the preceding
  // requests were checked against the node, which can fail for requests for all devices.
  struct Fault {
    std::size_t claim;
    std::size_t request;  // == number of requests: found at the end of the claim
    std::size_t alternative;
    Error error;
  };
  std::optional<Fault> fault;  // if set, `plan` ends before it

  std::shared_ptr<Plan> plan;
};

// Compiles problems. Equal claims share a plan and its cached outcomes.
//
// Bounds: kMaxPlans plans and kMaxExpressions compiled expressions. Beyond that all are dropped and
// rebuilt, which costs one search per class of nodes.
class PlanCache {
 public:
  static constexpr std::size_t kMaxPlans = 512;
  static constexpr std::size_t kMaxExpressions = 4'096;

  PlanCache(device::ExpressionCompiler& compiler, ShapeTable& shapes, const Features& features)
      : compiler_(compiler), shapes_(shapes), features_(features) {}

  Problem Prepare(std::span<const std::shared_ptr<const device::Claim>> claims,
                  const ClassLookup& classes);

 private:
  void ResolveClaim(std::size_t claim, const ClassLookup& classes, Problem& problem) const;
  std::optional<Error> CheckRequest(const device::Request& request,
                                    const device::Claim& claim) const;
  std::optional<Error> CheckAlternative(const device::RequestSpec& spec,
                                        const device::Claim& claim) const;
  std::optional<Error> ResolveClass(
      const device::RequestSpec& spec, const device::Claim& claim, const ClassLookup& classes,
      std::vector<std::shared_ptr<const device::DeviceClass>>& out) const;
  std::shared_ptr<Plan> BuildPlan(const Problem& problem);
  Alternative BuildAlternative(const device::RequestSpec& spec,
                               const device::DeviceClass& device_class, std::string_view parent,
                               const device::Claim& claim);
  std::shared_ptr<const device::Expression> Selector(std::string_view text);
  std::shared_ptr<const device::Expression> Derived(std::string_view text);

  device::ExpressionCompiler& compiler_;
  ShapeTable& shapes_;
  const Features features_;
  std::unordered_map<std::string, std::shared_ptr<Plan>, TextHash, std::equal_to<>>
      plans_;       // never iterated
  KeyBuilder key_;  // key of the current problem, kept to reuse its memory
  std::map<std::string, std::shared_ptr<const device::Expression>, std::less<>> selectors_;
  std::map<std::string, std::shared_ptr<const device::Expression>, std::less<>> derived_;
};

// Maximum number of results in a claim's status.
inline constexpr std::size_t kMaxResultsPerClaim = 32;

}  // namespace drakkar::allocator
