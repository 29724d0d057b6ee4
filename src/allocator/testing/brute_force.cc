#include "allocator/testing/brute_force.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text/text.h"

namespace drakkar::allocator {
namespace {

// A second implementation of a node's pools, from the specification.
struct Candidate {
  const device::Slice* slice;
  const device::Device* device;
  std::string id;
};
struct CandidatePool {
  std::vector<Candidate> devices;
  std::map<std::string, std::int64_t> counters;  // "set/counter"
  std::vector<Candidate> everywhere;             // all devices of the generation
  bool incomplete = false;
};

bool IsFor(const device::NodeTarget& target, const device::Node& node) {
  if (!target.node_name.empty()) return target.node_name == node.name;
  if (target.all_nodes) return true;
  if (!target.selector) return false;
  const auto& requirement = target.selector->terms[0].match_expressions[0];
  return node.labels.at("zone") == requirement.values[0];
}

bool IsRelevant(const device::Slice& slice, const device::Node& node) {
  if (!slice.per_device_node_selection) return IsFor(slice.target, node);
  return std::any_of(slice.devices.begin(), slice.devices.end(),
                     [&](const device::Device& device) { return IsFor(device.target, node); });
}

bool HasGroups(const device::Slice& slice) {
  for (const auto& device : slice.devices) {
    for (const auto& consumption : device.consumes_counters) {
      if (!consumption.compatibility_groups.empty()) return true;
    }
  }
  return false;
}

struct Taken {
  std::size_t claim;
  std::string request;
  const device::RequestSpec* spec;
  const Candidate* candidate;
};

class Solver {
 public:
  Solver(const RandomProblem& problem, const device::Node& node) : problem_(problem), node_(node) {
    GatherPools();
  }

  BruteForceAnswer Solve() {
    for (const auto& claim : problem_.claims) {
      for (const auto& request : claim->requests) {
        if (request.exactly) CheckAll(*request.exactly);
        for (const auto& spec : request.first_available) CheckAll(spec);
      }
    }
    if (fatal_) return {BruteForceAnswer::Kind::kFatal, {}};
    if (!Request(0, 0)) return {BruteForceAnswer::Kind::kDoesNotFit, {}};
    BruteForceAnswer answer{BruteForceAnswer::Kind::kFits, {}};
    for (const Taken& taken : taken_) {
      answer.solution.push_back(
          StrCat(problem_.claims[taken.claim]->name, "/", taken.request, " ", taken.candidate->id));
    }
    return answer;
  }

 private:
  const Features& features() const { return problem_.features; }

  void GatherPools() {
    std::map<std::pair<std::string, std::string>, std::vector<const device::Slice*>> by_pool;
    for (const auto& slice : problem_.slices) {
      if (!features().compatibility_groups && HasGroups(*slice)) continue;
      by_pool[{slice->driver, slice->pool}].push_back(slice.get());
    }
    for (auto& [id, slices] : by_pool) {
      std::sort(slices.begin(), slices.end(),
                [](const auto* a, const auto* b) { return a->name < b->name; });
      CandidatePool pool;
      bool relevant = false;
      pool.incomplete = static_cast<std::int64_t>(slices.size()) != slices[0]->slice_count;
      for (const device::Slice* slice : slices) {
        const bool ignored = !features().partitionable_devices &&
                             (slice->per_device_node_selection || !slice->shared_counters.empty());
        for (const auto& set : slice->shared_counters) {
          for (const auto& counter : set.counters) {
            pool.counters[StrCat(set.name, "/", counter.name)] = counter.value.Value();
          }
        }
        const bool here = !ignored && IsRelevant(*slice, node_);
        relevant = relevant || here;
        for (const device::Device& device : slice->devices) {
          Candidate candidate{slice, &device, StrCat(id.first, "/", id.second, "/", device.name)};
          pool.everywhere.push_back(candidate);
          if (here) pool.devices.push_back(candidate);
        }
      }
      if (!relevant) continue;
      if (features().partitionable_devices && !pool.incomplete) {
        for (const Candidate& candidate : pool.everywhere) {
          for (const auto& consumption : candidate.device->consumes_counters) {
            if (!pool.counters.contains(StrCat(consumption.counter_set, "/c"))) invalid_ = true;
          }
        }
      }
      if (pool.incomplete) pool.devices.clear();
      incomplete_ = incomplete_ || pool.incomplete;
      pools_.push_back(std::move(pool));
    }
    for (const bool binding : {false, true}) {
      for (const CandidatePool& pool : pools_) {
        for (const Candidate& candidate : pool.devices) {
          if (candidate.device->binding_conditions.empty() != binding) order_.push_back(&candidate);
        }
      }
    }
  }

  void CheckAll(const device::RequestSpec& spec) {
    if (spec.allocation_mode == "All" && (incomplete_ || invalid_)) fatal_ = true;
  }

  bool Selects(const device::RequestSpec& spec, const Candidate& candidate) const {
    if (!features().device_binding_and_status && !candidate.device->binding_conditions.empty()) {
      return false;
    }
    if (spec.device_class != "any" && spec.device_class != candidate.slice->driver) return false;
    if (!spec.selectors.empty()) {
      const std::string kind = std::get<std::string>(candidate.device->attributes[0].value);
      if (spec.selectors[0].cel->find(StrCat("== \"", kind, "\"")) == std::string::npos) {
        return false;
      }
    }
    return !candidate.slice->per_device_node_selection || IsFor(candidate.device->target, node_);
  }

  // The amount that the request consumes of the device's only capacity; nullopt if it is not
  // allowed.
  std::optional<std::int64_t> UnitsFor(const device::RequestSpec& spec,
                                       const device::Device& device) const {
    const bool asks = spec.capacity && !spec.capacity->empty();
    if (device.capacity.empty()) {
      if (asks) return std::nullopt;
      return 0;
    }
    const device::Capacity& capacity = device.capacity[0];
    if (!asks) {
      if (capacity.policy) return capacity.policy->default_value->Value();
      return capacity.value.Value();
    }
    std::int64_t amount = (*spec.capacity)[0].value.Value();
    // The policy is always: default 1, minimum 1, possibly in steps of 2.
    if (capacity.policy && capacity.policy->valid_range->step && amount % 2 == 0) ++amount;
    return amount;
  }

  bool IsShareable(const device::Device& device) const {
    return features().consumable_capacity && device.allow_multiple_allocations;
  }

  // Checks all rules from scratch for everything taken so far.
  bool IsValid() const {
    std::set<std::string> held;
    std::set<std::string> shared;
    std::map<std::string, std::int64_t> units;
    for (const auto& allocation : problem_.allocated) {
      for (const auto& result : allocation.results) {
        if (result.share_id.empty()) {
          held.insert(result.id.ToString());
        } else {
          shared.insert(result.id.ToString());
          for (const auto& consumed : result.consumed_capacity) {
            units[result.id.ToString()] += consumed.value.Value();
          }
        }
      }
    }
    // Counters and groups of allocated devices.
    std::vector<std::map<std::string, std::int64_t>> counters;
    std::vector<std::vector<std::vector<std::string>>> members(pools_.size());
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      counters.push_back(pools_[p].counters);
      for (const Candidate& candidate : pools_[p].everywhere) {
        if (!held.contains(candidate.id) && !shared.contains(candidate.id)) continue;
        if (!features().partitionable_devices) continue;
        for (const auto& consumption : candidate.device->consumes_counters) {
          counters[p]["set/c"] -= consumption.counters[0].value.Value();
          members[p].push_back(consumption.compatibility_groups);
        }
      }
    }
    std::set<std::string> picked;
    std::set<std::pair<std::size_t, std::string>> picked_by_claim;
    for (const Taken& taken : taken_) {
      const Candidate& candidate = *taken.candidate;
      const device::Device& device = *candidate.device;
      const bool shareable = IsShareable(device);
      const bool admin = taken.spec->admin_access.value_or(false);
      if (admin) {
        if (picked_by_claim.contains({taken.claim, candidate.id})) return false;
      } else if (held.contains(candidate.id) || picked.contains(candidate.id)) {
        return false;
      }
      if (features().consumable_capacity) {
        const auto amount = UnitsFor(*taken.spec, device);
        if (!amount) return false;
        if (!device.capacity.empty()) {
          if (units[candidate.id] + *amount > device.capacity[0].value.Value()) return false;
          if (shareable) units[candidate.id] += *amount;
        }
      }
      if (candidate.slice->skip_node_operations.SkipsAny()) {
        if (!features().optional_node_operations || node_.declared_features.empty()) return false;
      }
      if (!device.consumes_counters.empty()) {
        if (!features().partitionable_devices) return false;
        if (!shareable || !shared.contains(candidate.id)) {
          const std::size_t p = PoolOf(candidate);
          if (counters[p]["set/c"] < 0) return false;
          counters[p]["set/c"] -= device.consumes_counters[0].counters[0].value.Value();
          if (counters[p]["set/c"] < 0) return false;
          if (features().compatibility_groups &&
              !MayJoin(members[p], device.consumes_counters[0].compatibility_groups)) {
            return false;
          }
          members[p].push_back(device.consumes_counters[0].compatibility_groups);
        }
      }
      if (features().device_taints && !device.taints.empty() && taken.spec->tolerations.empty()) {
        return false;
      }
      if (shareable) {
        shared.insert(candidate.id);
      } else {
        picked.insert(candidate.id);
        picked_by_claim.insert({taken.claim, candidate.id});
      }
    }
    return AreConstraintsMet();
  }

  static bool MayJoin(const std::vector<std::vector<std::string>>& members,
                      const std::vector<std::string>& groups) {
    if (members.empty()) return true;
    std::vector<std::string> common = groups;
    for (const auto& member : members) {
      if (member.empty() != groups.empty()) return false;
      std::erase_if(common, [&](const std::string& group) {
        return std::find(member.begin(), member.end(), group) == member.end();
      });
    }
    return groups.empty() || !common.empty();
  }

  bool AreConstraintsMet() const {
    for (std::size_t c = 0; c < problem_.claims.size(); ++c) {
      for (const device::Constraint& constraint : problem_.claims[c]->constraints) {
        std::vector<std::set<std::string>> values;
        for (const Taken& taken : taken_) {
          if (taken.claim != c) continue;
          const std::string parent = taken.request.substr(0, taken.request.find('/'));
          if (!constraint.requests.empty() && constraint.requests[0] != parent) continue;
          values.push_back(ValuesOf(*taken.candidate->device));
          if (values.back().empty()) return false;
        }
        if (constraint.match_attribute && !HaveCommon(values)) return false;
        if (constraint.distinct_attribute && !AreAllDifferent(values)) return false;
      }
    }
    return true;
  }

  std::set<std::string> ValuesOf(const device::Device& device) const {
    if (device.attributes.size() < 2) return {};
    const device::AttributeValue& value = device.attributes[1].value;
    if (const auto* text = std::get_if<std::string>(&value)) return {*text};
    if (const auto* number = std::get_if<std::int64_t>(&value)) return {StrCat("#", *number)};
    if (!features().list_type_attributes) return {};
    const auto& list = std::get<std::vector<std::string>>(value);
    return {list.begin(), list.end()};
  }

  static bool HaveCommon(const std::vector<std::set<std::string>>& values) {
    if (values.empty()) return true;
    return std::any_of(values[0].begin(), values[0].end(), [&](const std::string& value) {
      return std::all_of(values.begin(), values.end(),
                         [&](const auto& other) { return other.contains(value); });
    });
  }

  static bool AreAllDifferent(const std::vector<std::set<std::string>>& values) {
    std::set<std::string> seen;
    for (const auto& one : values) {
      for (const std::string& value : one) {
        if (!seen.insert(value).second) return false;
      }
    }
    return true;
  }

  std::size_t PoolOf(const Candidate& candidate) const {
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      if (!pools_[p].devices.empty() && &pools_[p].devices.front() <= &candidate &&
          &candidate <= &pools_[p].devices.back()) {
        return p;
      }
    }
    return 0;
  }

  bool Request(std::size_t claim, std::size_t request) {
    if (claim == problem_.claims.size()) return true;
    const auto& requests = problem_.claims[claim]->requests;
    if (request == requests.size()) return Request(claim + 1, 0);
    const device::Request& wanted = requests[request];
    if (wanted.exactly) return Alternative(claim, request, *wanted.exactly, wanted.name);
    for (const auto& spec : wanted.first_available) {
      if (Alternative(claim, request, spec, StrCat(wanted.name, "/", spec.name))) return true;
    }
    return false;
  }

  bool Alternative(std::size_t claim, std::size_t request, const device::RequestSpec& spec,
                   const std::string& name) {
    if (spec.allocation_mode == "All") return All(claim, request, spec, name);
    return Combination(claim, request, spec, name, 0, 0);
  }

  bool Combination(std::size_t claim, std::size_t request, const device::RequestSpec& spec,
                   const std::string& name, std::int64_t count, std::size_t start) {
    if (count == spec.count) return Request(claim, request + 1);
    for (std::size_t i = start; i < order_.size(); ++i) {
      if (!Selects(spec, *order_[i])) continue;
      taken_.push_back({claim, name, &spec, order_[i]});
      if (IsValid() && Combination(claim, request, spec, name, count + 1, i + 1)) return true;
      taken_.pop_back();
    }
    return false;
  }

  bool All(std::size_t claim, std::size_t request, const device::RequestSpec& spec,
           const std::string& name) {
    const std::size_t before = taken_.size();
    for (const Candidate* candidate : order_) {
      if (!Selects(spec, *candidate)) continue;
      if (features().consumable_capacity) {
        const auto amount = UnitsFor(spec, *candidate->device);
        if (!amount) continue;
        if (!candidate->device->capacity.empty() &&
            *amount > candidate->device->capacity[0].value.Value()) {
          continue;
        }
      }
      taken_.push_back({claim, name, &spec, candidate});
    }
    if (taken_.size() > before && IsValid() && Request(claim, request + 1)) return true;
    taken_.resize(before);
    return false;
  }

  const RandomProblem& problem_;
  const device::Node& node_;
  std::vector<CandidatePool> pools_;
  std::vector<const Candidate*> order_;
  std::vector<Taken> taken_;
  bool incomplete_ = false;
  bool invalid_ = false;
  bool fatal_ = false;
};

}  // namespace

BruteForceAnswer SolveByBruteForce(const RandomProblem& problem, const device::Node& node) {
  return Solver(problem, node).Solve();
}

}  // namespace drakkar::allocator
