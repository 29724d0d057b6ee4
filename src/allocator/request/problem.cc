#include "allocator/request/problem.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::allocator {
namespace {

using device::Claim;
using device::DeviceClass;
using device::RequestSpec;

Error Bad(std::string message) {
  return InvalidArgument(std::move(message));
}

bool AppliesTo(const device::Constraint& constraint, std::string_view parent,
               std::string_view name) {
  if (constraint.requests.empty()) return true;
  const std::string full = parent.empty() ? std::string(name) : StrCat(parent, "/", name);
  return std::any_of(constraint.requests.begin(), constraint.requests.end(),
                     [&](const std::string& request) {
                       return request == full || (!parent.empty() && request == parent);
                     });
}

// The alternatives of a request: its subrequests, or the request itself.
std::span<const RequestSpec> AlternativesOf(const device::Request& request) {
  if (!request.first_available.empty() || !request.exactly) return request.first_available;
  return {&*request.exactly, 1};
}

std::string_view TextOf(const std::optional<std::string>& text) {
  return text ? std::string_view(*text) : std::string_view();
}

void WriteSelectors(KeyBuilder& key, const std::vector<device::Selector>& selectors) {
  key.Small(static_cast<std::uint32_t>(selectors.size()));
  for (const device::Selector& selector : selectors) key.Text(TextOf(selector.cel));
}

// Structured bindings make a new member fail to compile until it is added here. Two problems that
// differ only in what the key omits would share their answers.
void WriteSpec(KeyBuilder& key, const RequestSpec& spec, const DeviceClass& resolved_class) {
  const auto& [name, device_class, selectors, allocation_mode, count, admin_access, tolerations,
               capacity, derived_attributes] = spec;
  key.Text(name);
  key.Text(device_class);
  WriteSelectors(key, resolved_class.selectors);
  WriteSelectors(key, selectors);
  key.Text(allocation_mode);
  key.Number(static_cast<std::uint64_t>(count));
  key.Flag(admin_access.value_or(false));
  key.Small(static_cast<std::uint32_t>(tolerations.size()));
  for (const device::Toleration& toleration : tolerations) {
    const auto& [tolerated, op, value, effect, toleration_seconds] = toleration;
    key.Text(tolerated);
    key.Text(op);
    key.Text(value);
    key.Text(effect);
    // Does not affect which devices fit, but it is copied into the result.
    key.Flag(toleration_seconds.has_value());
    key.Number(static_cast<std::uint64_t>(toleration_seconds.value_or(0)));
  }
  const std::size_t capacities = capacity ? capacity->size() : 0;
  key.Small(static_cast<std::uint32_t>(capacities));
  for (std::size_t i = 0; i < capacities; ++i) {
    const auto& [resource, amount] = (*capacity)[i];
    key.Text(resource);
    key.Text(amount.ToString());
  }
  key.Small(static_cast<std::uint32_t>(derived_attributes.size()));
  for (const device::DerivedAttribute& derived : derived_attributes) {
    const auto& [attribute, expression] = derived;
    key.Text(attribute);
    key.Text(expression);
  }
}

// Everything of the problem that an answer depends on.
void WriteKey(KeyBuilder& key, const Problem& problem) {
  auto device_class = problem.classes.begin();
  for (const auto& claim : problem.claims) {
    key.Small(static_cast<std::uint32_t>(claim->requests.size()));
    for (const device::Request& request : claim->requests) {
      key.Text(request.name);
      key.Small(static_cast<std::uint32_t>(request.first_available.size()));
      for (const RequestSpec& spec : AlternativesOf(request)) {
        WriteSpec(key, spec, **device_class++);
      }
    }
    key.Small(static_cast<std::uint32_t>(claim->constraints.size()));
    for (const device::Constraint& constraint : claim->constraints) {
      const bool match = constraint.match_attribute.has_value();
      key.List(constraint.requests);
      key.Flag(match);
      key.Text(TextOf(match ? constraint.match_attribute : constraint.distinct_attribute));
    }
  }
}

}  // namespace

Problem PlanCache::Prepare(std::span<const std::shared_ptr<const Claim>> claims,
                           const ClassLookup& classes) {
  Problem problem;
  problem.claims.assign(claims.begin(), claims.end());
  for (std::size_t c = 0; c < claims.size() && !problem.fault; ++c) {
    ResolveClaim(c, classes, problem);
  }
  if (problem.fault) {
    problem.plan = BuildPlan(problem);
    return problem;
  }
  key_.Clear();
  WriteKey(key_, problem);
  const auto found = plans_.find(key_.bytes());
  if (found != plans_.end()) {
    problem.plan = found->second;
    return problem;
  }
  if (plans_.size() >= kMaxPlans) plans_.clear();
  problem.plan = BuildPlan(problem);
  plans_.emplace(key_.bytes(), problem.plan);
  return problem;
}

// Finds the classes of one claim, up to its first error.
void PlanCache::ResolveClaim(std::size_t c, const ClassLookup& classes, Problem& problem) const {
  const Claim& claim = *problem.claims[c];
  const auto fail = [&](std::size_t r, std::size_t a, Error error) {
    problem.fault = Problem::Fault{c, r, a, std::move(error)};
  };
  for (std::size_t r = 0; r < claim.requests.size(); ++r) {
    const device::Request& request = claim.requests[r];
    if (auto error = CheckRequest(request, claim)) return fail(r, 0, *std::move(error));
    const std::span<const RequestSpec> specs = AlternativesOf(request);
    for (std::size_t a = 0; a < specs.size(); ++a) {
      auto error = CheckAlternative(specs[a], claim);
      if (!error) error = ResolveClass(specs[a], claim, classes, problem.classes);
      if (error) return fail(r, a, *std::move(error));
    }
  }
  for (std::size_t i = 0; i < claim.constraints.size(); ++i) {
    const device::Constraint& constraint = claim.constraints[i];
    if (constraint.match_attribute || constraint.distinct_attribute) continue;
    return fail(claim.requests.size(), 0,
                Bad(StrCat("claim ", claim.ToString(), ", constraint #", i,
                           ": empty constraint (unsupported constraint type?)")));
  }
}

std::optional<Error> PlanCache::CheckRequest(const device::Request& request,
                                             const Claim& claim) const {
  const auto bad = [&](std::string_view what) {
    return Bad(StrCat("claim ", claim.ToString(), ", request ", request.name, ": ", what));
  };
  if (!request.first_available.empty() && !features_.prioritized_list) {
    return bad("has subrequests, but the DRAPrioritizedList feature is disabled");
  }
  if (!features_.consumable_capacity) {
    constexpr char kDisabled[] =
        "has capacity requests, but the DRAConsumableCapacity feature is disabled";
    if (request.exactly && request.exactly->capacity) return bad(kDisabled);
    for (const RequestSpec& spec : request.first_available) {
      if (!spec.capacity) continue;
      return Bad(StrCat("claim ", claim.ToString(), ", subrequest ", spec.name, ": ", kDisabled));
    }
  }
  if (!request.exactly && request.first_available.empty()) {
    return bad("missing device class name (unsupported request type?)");
  }
  return std::nullopt;
}

std::optional<Error> PlanCache::CheckAlternative(const RequestSpec& spec,
                                                 const Claim& claim) const {
  const auto bad = [&](const auto&... what) {
    return Bad(StrCat("claim ", claim.ToString(), ", request ", spec.name, what...));
  };
  if (!spec.derived_attributes.empty() && !features_.derived_attributes) {
    return bad(": cannot handle request with derived attributes, the feature is disabled");
  }
  for (std::size_t i = 0; i < spec.selectors.size(); ++i) {
    if (spec.selectors[i].cel) continue;
    return bad(", selector #", i, ": CEL expression empty (unsupported selector type?)");
  }
  if (spec.admin_access && !features_.admin_access) {
    return bad(": admin access is requested, but the feature is disabled");
  }
  if (spec.device_class.empty()) {
    return bad(": missing device class name (unsupported request type?)");
  }
  return std::nullopt;
}

std::optional<Error> PlanCache::ResolveClass(
    const RequestSpec& spec, const Claim& claim, const ClassLookup& classes,
    std::vector<std::shared_ptr<const DeviceClass>>& out) const {
  const auto bad = [&](const auto&... what) {
    return Bad(StrCat("claim ", claim.ToString(), ", request ", spec.name, what...));
  };
  Result<std::shared_ptr<const DeviceClass>> found = classes(spec.device_class);
  if (!found.ok()) {
    return bad(": could not retrieve device class ", spec.device_class, ": ",
               found.error().message);
  }
  if (spec.allocation_mode != "ExactCount" && spec.allocation_mode != "All") {
    return bad(": unsupported count mode ", spec.allocation_mode);
  }
  for (std::size_t i = 0; i < (*found)->selectors.size(); ++i) {
    if ((*found)->selectors[i].cel) continue;
    return Bad(StrCat("class ", spec.device_class, ": selector #", i,
                      ": CEL expression empty (unsupported selector type?)"));
  }
  out.push_back(*std::move(found));
  return std::nullopt;
}

std::shared_ptr<Plan> PlanCache::BuildPlan(const Problem& problem) {
  std::vector<ClaimPlan> plans;
  // If there is a fault, the plan contains everything before it and nothing after it.
  const auto& fault = problem.fault;
  std::uint32_t number = 0;       // request number
  std::uint32_t alternative = 0;  // alternative number, over all requests
  std::uint32_t constraint_number = 0;
  for (std::size_t c = 0; c < problem.claims.size() && (!fault || c <= fault->claim); ++c) {
    const Claim& claim = *problem.claims[c];
    ClaimPlan& plan = plans.emplace_back();
    plan.first_constraint = constraint_number;
    const bool stops = fault && c == fault->claim;
    for (std::size_t r = 0; r < claim.requests.size() && (!stops || r <= fault->request); ++r) {
      const device::Request& request = claim.requests[r];
      const std::span<const RequestSpec> specs = AlternativesOf(request);
      const std::size_t count = stops && r == fault->request ? fault->alternative : specs.size();
      RequestPlan& request_plan = plan.requests.emplace_back();
      request_plan.prioritized = !request.first_available.empty();
      request_plan.number = number++;
      request_plan.first_alternative = alternative;
      for (const RequestSpec& spec : specs.first(count)) {
        const DeviceClass& device_class = *problem.classes[alternative++];
        request_plan.alternatives.push_back(BuildAlternative(
            spec, device_class, request_plan.prioritized ? request.name : "", claim));
      }
    }
    constraint_number += static_cast<std::uint32_t>(claim.constraints.size());
    for (const device::Constraint& constraint : claim.constraints) {
      const bool distinct = !constraint.match_attribute;
      std::string attribute =
          constraint.match_attribute.value_or(constraint.distinct_attribute.value_or(""));
      shapes_.AddInterest(attribute);
      plan.constraints.push_back({distinct, std::move(attribute)});
    }
  }
  return std::make_shared<Plan>(std::move(plans), features_);
}

Alternative PlanCache::BuildAlternative(const RequestSpec& spec, const DeviceClass& device_class,
                                        std::string_view parent, const Claim& claim) {
  Alternative alternative;
  alternative.spec = spec;
  alternative.parent = parent;
  alternative.class_name = device_class.name;
  alternative.all = spec.allocation_mode == "All";
  alternative.admin = spec.admin_access.value_or(false);
  for (const device::Selector& selector : device_class.selectors) {
    alternative.class_selectors.push_back(Selector(*selector.cel));
  }
  for (const device::Selector& selector : spec.selectors) {
    alternative.selectors.push_back(Selector(*selector.cel));
  }
  for (const device::DerivedAttribute& derived : spec.derived_attributes) {
    alternative.derived.push_back(Derived(derived.expression));
  }
  for (std::size_t i = 0; i < claim.constraints.size(); ++i) {
    if (AppliesTo(claim.constraints[i], parent, spec.name)) {
      alternative.constraints.push_back(static_cast<std::uint32_t>(i));
    }
  }
  return alternative;
}

std::shared_ptr<const device::Expression> PlanCache::Selector(std::string_view text) {
  const auto found = selectors_.find(text);
  if (found != selectors_.end()) return found->second;
  if (selectors_.size() >= kMaxExpressions) selectors_.clear();
  std::shared_ptr<const device::Expression> expression = compiler_.CompileSelector(text);
  shapes_.AddInterest(expression->reads());
  selectors_.emplace(text, expression);
  return expression;
}

std::shared_ptr<const device::Expression> PlanCache::Derived(std::string_view text) {
  const auto found = derived_.find(text);
  if (found != derived_.end()) return found->second;
  if (derived_.size() >= kMaxExpressions) derived_.clear();
  std::shared_ptr<const device::Expression> expression = compiler_.CompileDerived(text);
  shapes_.AddInterest(expression->reads());
  derived_.emplace(text, expression);
  return expression;
}

}  // namespace drakkar::allocator
