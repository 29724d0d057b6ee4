#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"
#include "features/framework/runtime_features.h"
#include "features/framework/version.h"

namespace drakkar::features {

// What a feature may inspect to decide whether a pod requires it. All values are borrowed.
struct PodInfo {
  api::Value spec;
  api::Value status;
  // The pod's allocated ResourceClaims, as whole objects. Unallocated claims have no requirements
  // yet; the allocator checks the node for those.
  std::vector<api::Value> claims;
};
// A pod object as PodInfo, without claims.
PodInfo PodInfoOf(api::Value pod);

// Whether the named gate is on; unknown gates are off.
using GateLookup = std::function<bool(std::string_view name)>;
GateLookup LookupIn(const FeatureGates& gates);  // copies them
// For any component: a gate may be given under any of its names; its own name takes precedence.
GateLookup LookupIn(std::map<std::string, bool, std::less<>> gates);

// Everything that determines what a node declares, known before the node exists.
struct NodeConfiguration {
  std::optional<Version> version;
  GateLookup gate_enabled;  // if empty, all gates are off
  // Keys as KEP-5328 spells them: "CPUManagerPolicy" -> "static".
  std::map<std::string, std::string, std::less<>> static_configuration;
  RuntimeFeatures runtime_features;
};

// All of these must be met for a node to declare a feature.
struct FeatureRequirements {
  std::vector<std::string> enabled_feature_gates;  // at least one
  std::map<std::string, std::string, std::less<>> static_configuration;
  RuntimeFeatures runtime_features;
};

// A message about the first unmet requirement; none if all are met.
std::optional<std::string> FirstUnmet(const FeatureRequirements& requirements,
                                      const NodeConfiguration& configuration);

// What a feature infers from a pod: the field that requires it ("spec.hostUsers"), nothing if the
// pod does not require it, or an error if that cannot be determined, which fails the request or the
// scheduling attempt.
class NeededBecauseOf {
 public:
  NeededBecauseOf(std::nullopt_t) {}
  NeededBecauseOf(std::optional<std::string> field) : field_(std::move(field)) {}
  NeededBecauseOf(std::string field) : field_(std::move(field)) {}
  NeededBecauseOf(const char* field) : field_(field) {}
  NeededBecauseOf(Error error) : error_(std::move(error)) {}

  bool has_value() const { return field_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const std::string& operator*() const { return *field_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::optional<std::string> field_;
  std::optional<Error> error_;
};

// One feature that nodes declare and pods may require (KEP-5328). Immutable and thread-safe. Its
// answers depend only on the arguments, never on hardware or the current state of a node.
class Feature {
 public:
  virtual ~Feature() = default;

  // The name in node.status.declaredFeatures and in messages.
  virtual std::string_view Name() const = 0;
  // Further names for the same bit: a node declares all of them, and any of them satisfies a
  // requirement.
  virtual std::vector<std::string> Aliases() const { return {}; }

  virtual FeatureRequirements Requirements() const = 0;
  // Called only if all gates in Requirements are on, so that no feature outlives its gate. On error
  // the feature is not declared and the error is logged. By default, checks the requirements.
  virtual Result<bool> Discover(const NodeConfiguration& configuration) const;

  virtual NeededBecauseOf InferForScheduling(const PodInfo& pod) const;
  virtual NeededBecauseOf InferForUpdate(const PodInfo& old_pod, const PodInfo& new_pod) const;

  // The last version (inclusive) in which the feature is a constraint; none means no end.
  virtual std::optional<Version> MaxVersion() const { return std::nullopt; }
};

}  // namespace drakkar::features
