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

void WriteSelectors(KeyBuilder& key, const std::vector<device::Selector>& selectors) {
  key.Small(static_cast<std::uint32_t>(selectors.size()));
  for (const device::Selector& selector : selectors) key.Text(selector.cel.value_or(""));
}

void WriteSpec(KeyBuilder& key, const RequestSpec& spec, const DeviceClass& device_class) {
  key.Text(spec.name);
  key.Text(spec.device_class);
  WriteSelectors(key, device_class.selectors);
  WriteSelectors(key, spec.selectors);
  key.Text(spec.allocation_mode);
  key.Number(static_cast<std::uint64_t>(spec.count));
  key.Flag(spec.admin_access.value_or(false));
  key.Small(static_cast<std::uint32_t>(spec.tolerations.size()));
  for (const device::Toleration& toleration : spec.tolerations) {
    key.Text(toleration.key);
    key.Text(toleration.op);
    key.Text(toleration.value);
    key.Text(toleration.effect);
  }
  const std::size_t capacities = spec.capacity ? spec.capacity->size() : 0;
  key.Small(static_cast<std::uint32_t>(capacities));
  for (std::size_t i = 0; i < capacities; ++i) {
    key.Text((*spec.capacity)[i].name);
    key.Text((*spec.capacity)[i].value.ToString());
  }
  key.Small(static_cast<std::uint32_t>(spec.derived_attributes.size()));
  for (const device::DerivedAttribute& derived : spec.derived_attributes) {
    key.Text(derived.name);
    key.Text(derived.expression);
  }
}

// Everything of the problem that an answer depends on.
std::string KeyOf(const Problem& problem) {
  KeyBuilder key;
  for (std::size_t c = 0; c < problem.claims.size(); ++c) {
    const Claim& claim = *problem.claims[c];
    key.Small(static_cast<std::uint32_t>(claim.requests.size()));
    for (std::size_t r = 0; r < claim.requests.size(); ++r) {
      const device::Request& request = claim.requests[r];
      const auto& classes = problem.classes[c][r];
      key.Text(request.name);
      key.Small(static_cast<std::uint32_t>(request.first_available.size()));
      if (request.first_available.empty()) {
        WriteSpec(key, *request.exactly, *classes[0]);
        continue;
      }
      for (std::size_t a = 0; a < classes.size(); ++a) {
        WriteSpec(key, request.first_available[a], *classes[a]);
      }
    }
    key.Small(static_cast<std::uint32_t>(claim.constraints.size()));
    for (const device::Constraint& constraint : claim.constraints) {
      key.List(constraint.requests);
      key.Flag(constraint.match_attribute.has_value());
      key.Text(constraint.match_attribute.value_or(constraint.distinct_attribute.value_or("")));
    }
  }
  return std::string(key.bytes());
}

}  // namespace

Problem PlanCache::Prepare(std::span<const std::shared_ptr<const Claim>> claims,
                           const ClassLookup& classes) {
  Problem problem;
  problem.claims.assign(claims.begin(), claims.end());
  for (const auto& claim : claims) problem.claim_names.push_back(claim->ToString());

  const auto fail = [&](std::size_t c, std::size_t r, std::size_t a, Error error) {
    problem.fault = Problem::Fault{c, r, a, std::move(error)};
  };
  for (std::size_t c = 0; c < claims.size() && !problem.fault; ++c) {
    const Claim& claim = *claims[c];
    const std::string& name = problem.claim_names[c];
    auto& claim_classes = problem.classes.emplace_back();
    for (std::size_t r = 0; r < claim.requests.size() && !problem.fault; ++r) {
      const device::Request& request = claim.requests[r];
      auto& request_classes = claim_classes.emplace_back();
      if (auto error = CheckRequest(request, name)) {
        fail(c, r, 0, *std::move(error));
        break;
      }
      std::vector<const RequestSpec*> specs;
      for (const RequestSpec& spec : request.first_available) specs.push_back(&spec);
      if (specs.empty() && request.exactly) specs.push_back(&*request.exactly);
      for (std::size_t a = 0; a < specs.size() && !problem.fault; ++a) {
        auto error = CheckAlternative(*specs[a], name);
        if (!error) error = ResolveClass(*specs[a], name, classes, request_classes);
        if (error) fail(c, r, a, *std::move(error));
      }
    }
    for (std::size_t i = 0; i < claim.constraints.size() && !problem.fault; ++i) {
      const device::Constraint& constraint = claim.constraints[i];
      if (constraint.match_attribute || constraint.distinct_attribute) continue;
      fail(c, claim.requests.size(), 0,
           Bad(StrCat("claim ", name, ", constraint #", i,
                      ": empty constraint (unsupported constraint type?)")));
    }
  }

  if (problem.fault) {
    problem.plan = BuildPlan(problem);
    return problem;
  }
  const std::string key = KeyOf(problem);
  const auto found = plans_.find(key);
  if (found != plans_.end()) {
    problem.plan = found->second;
    return problem;
  }
  if (plans_.size() >= kMaxPlans) plans_.clear();
  problem.plan = BuildPlan(problem);
  plans_.emplace(key, problem.plan);
  return problem;
}

std::optional<Error> PlanCache::CheckRequest(const device::Request& request,
                                             std::string_view claim) const {
  const auto bad = [&](std::string_view what) {
    return Bad(StrCat("claim ", claim, ", request ", request.name, ": ", what));
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
      return Bad(StrCat("claim ", claim, ", subrequest ", spec.name, ": ", kDisabled));
    }
  }
  if (!request.exactly && request.first_available.empty()) {
    return bad("missing device class name (unsupported request type?)");
  }
  return std::nullopt;
}

std::optional<Error> PlanCache::CheckAlternative(const RequestSpec& spec,
                                                 std::string_view claim) const {
  const auto bad = [&](const auto&... what) {
    return Bad(StrCat("claim ", claim, ", request ", spec.name, what...));
  };
  if (!spec.derived_attributes.empty() && !features_.derived_attributes) {
    return bad(": cannot handle request with derived attributes, the feature is disabled");
  }
  for (std::size_t i = 0; i < spec.selectors.size(); ++i) {
    if (spec.selectors[i].cel) continue;
    return bad(", selector #", i,
               ": CEL expression empty (unsupported selector type?)");
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
    const RequestSpec& spec, std::string_view claim, const ClassLookup& classes,
    std::vector<std::shared_ptr<const DeviceClass>>& out) {
  const auto bad = [&](const auto&... what) {
    return Bad(StrCat("claim ", claim, ", request ", spec.name, what...));
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
  // With a fault, everything before it is there and nothing after it.
  for (std::size_t c = 0; c < problem.classes.size(); ++c) {
    const Claim& claim = *problem.claims[c];
    ClaimPlan& plan = plans.emplace_back();
    for (std::size_t r = 0; r < problem.classes[c].size(); ++r) {
      const device::Request& request = claim.requests[r];
      const auto& classes = problem.classes[c][r];
      RequestPlan& request_plan = plan.requests.emplace_back();
      request_plan.prioritized = !request.first_available.empty();
      for (std::size_t a = 0; a < classes.size(); ++a) {
        const RequestSpec& spec =
            request_plan.prioritized ? request.first_available[a] : *request.exactly;
        Alternative alternative =
            BuildAlternative(spec, *classes[a], request_plan.prioritized ? request.name : "", claim);
        request_plan.alternatives.push_back(std::move(alternative));
      }
    }
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
