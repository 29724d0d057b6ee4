#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/constraint/value_table.h"
#include "allocator/features.h"
#include "allocator/ledger/capacity_policy.h"
#include "allocator/outcome.h"
#include "allocator/view/pool_view.h"
#include "device/claim.h"
#include "device/expression.h"

namespace drakkar::allocator {

// Whether a request selects devices of one shape. Cached, because there are few shapes.
enum class Selection : std::uint8_t { kUnknown, kYes, kNotByClass, kNotByRequest, kError };

// One request without alternatives, or one alternative of a request.
struct Alternative {
  device::RequestSpec spec;
  std::string parent;  // request of which this is an alternative; otherwise empty
  std::string class_name;
  std::vector<std::shared_ptr<const device::Expression>> class_selectors;
  std::vector<std::shared_ptr<const device::Expression>> selectors;
  std::vector<std::shared_ptr<const device::Expression>> derived;  // parallel to the spec's
  bool all = false;
  bool admin = false;
  std::vector<std::uint32_t> constraints;  // indexes of the claim's constraints that apply

  std::string full_name() const;  // "request" or "request/subrequest"

  // Cached results, indexed by shape.
  std::vector<Selection> selection;
  std::vector<std::uint8_t> tolerates;                  // 0 unknown, 1 no, 2 yes
  std::vector<std::unique_ptr<CapacityNeed>> capacity;  // null: unknown
  std::vector<std::vector<std::int32_t>> values;        // per entry of `constraints`, then shape
};

struct RequestPlan {
  std::vector<Alternative> alternatives;  // one, or the subrequests in their order
  bool prioritized = false;
  std::uint32_t number = 0;             // index among the requests of all claims
  std::uint32_t first_alternative = 0;  // index among the alternatives of all requests
};

struct ConstraintPlan {
  bool distinct = false;
  std::string attribute;
};

struct ClaimPlan {
  std::vector<RequestPlan> requests;
  std::vector<ConstraintPlan> constraints;
  std::uint32_t first_constraint = 0;  // index among the constraints of all claims
};

// One device of a solution, by position, so that the solution is valid on every node of a class.
struct Pick {
  std::uint32_t claim;
  std::uint32_t request;
  std::uint32_t alternative;
  std::uint32_t device;  // position in the search order of the node
};

// The outcome of a search on one class of nodes.
struct CachedOutcome {
  enum class Kind : std::uint8_t { kUnknown, kFits, kUnsatisfiable };
  Kind kind = Kind::kUnknown;
  Reason reason = Reason::kNoDevices;  // if kUnsatisfiable, together with `message`
  std::string message;
  std::uint64_t shared_version = 0;
  std::vector<Pick> picks;
  std::vector<std::uint32_t> chosen;  // by request number: the chosen alternative
};

// A set of claims compiled for the search, without anything that depends on the claims' names, and
// the cached outcomes. Equal claims share one plan.
class Plan {
 public:
  Plan(std::vector<ClaimPlan> claims, const Features& features)
      : claims_(std::move(claims)), features_(features) {}

  std::vector<ClaimPlan>& claims() { return claims_; }
  const std::vector<ClaimPlan>& claims() const { return claims_; }
  const ValueTable& values() const { return values_; }

  // Drops everything cached by shape if shapes were renumbered.
  void Sync(std::uint64_t shape_epoch, std::size_t shape_count);

  Selection SelectionOf(Alternative& alternative, std::string_view driver,
                        const ViewDevice& device);
  bool Tolerates(Alternative& alternative, const std::vector<device::Taint>& taints,
                 std::uint32_t shape);
  const CapacityNeed& CapacityOf(Alternative& alternative, const ViewDevice& device);
  // The value that the alternative's n-th applicable constraint compares.
  std::int32_t ValueOf(const ClaimPlan& claim, Alternative& alternative, std::size_t n,
                       std::string_view driver, const ViewDevice& device);

  // Outcomes by class of nodes; valid for one generation of the node index.
  std::vector<CachedOutcome> outcomes;
  std::uint64_t outcome_generation = ~std::uint64_t{0};

 private:
  std::vector<ClaimPlan> claims_;
  const Features features_;
  ValueTable values_;
  std::uint64_t shape_epoch_ = ~std::uint64_t{0};
  std::size_t shape_count_ = 0;
};

// Why SelectionOf returned kError for this device: the message that ends the attempt.
std::string SelectionError(const Alternative& alternative, std::string_view claim,
                           std::string_view driver, const device::DeviceId& id,
                           const device::Device& device);
// Why ValueOf returned kError.
std::string DerivedError(const ClaimPlan& claim, const Alternative& alternative, std::size_t n,
                         std::string_view driver, const device::DeviceId& id,
                         const device::Device& device);

}  // namespace drakkar::allocator
