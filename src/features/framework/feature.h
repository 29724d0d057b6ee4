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

// What a feature may look at to tell whether a pod needs it. All values are borrowed.
struct PodInfo {
  api::Value spec;
  api::Value status;
  // The pod's allocated ResourceClaims, whole objects. Claims that are not allocated yet say
  // nothing about features: the allocator asks the node for those.
  std::vector<api::Value> claims;
};
// A pod object as PodInfo, without claims.
PodInfo PodInfoOf(api::Value pod);

// Whether a gate is on, by its name; names it does not know are off.
using GateLookup = std::function<bool(std::string_view name)>;
GateLookup LookupIn(const FeatureGates& gates);  // copies them
// Of an arbitrary component: a gate may be given under any of its names, its own name first.
GateLookup LookupIn(std::map<std::string, bool, std::less<>> gates);

// Everything that decides what a node declares, known before the node exists.
struct NodeConfiguration {
  std::optional<Version> version;
  GateLookup gate_enabled;  // none: all gates are off
  // Keys as KEP-5328 spells them: "CPUManagerPolicy" -> "static".
  std::map<std::string, std::string, std::less<>> static_configuration;
  RuntimeFeatures runtime_features;
};

// What a node must have so that it declares a feature: all of it.
struct FeatureRequirements {
  std::vector<std::string> enabled_feature_gates;  // at least one
  std::map<std::string, std::string, std::less<>> static_configuration;
  RuntimeFeatures runtime_features;
};

// The first requirement that is not met, as a sentence; nothing if the configuration meets all.
std::optional<std::string> FirstUnmet(const FeatureRequirements& requirements,
                                      const NodeConfiguration& configuration);

// What a feature infers from a pod: the field because of which the pod needs it ("spec.hostUsers"),
// nothing if it does not, or why that cannot be told; then the request or the attempt fails.
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

// One feature that nodes declare and pods may need (KEP-5328). Immutable, safe on any thread; the
// answers depend on the arguments alone, never on hardware or the present state of a node.
class Feature {
 public:
  virtual ~Feature() = default;

  // The name in node.status.declaredFeatures and in messages.
  virtual std::string_view Name() const = 0;
  // Further names for the same bit: a node declares all of them, any of them satisfies a match.
  virtual std::vector<std::string> Aliases() const { return {}; }

  virtual FeatureRequirements Requirements() const = 0;
  // Asked only where all gates of Requirements are on, so that no feature can outlive its gate. An
  // error means: not declared, and worth a line in the log. The default is that the requirements
  // are met.
  virtual Result<bool> Discover(const NodeConfiguration& configuration) const;

  virtual NeededBecauseOf InferForScheduling(const PodInfo& pod) const;
  virtual NeededBecauseOf InferForUpdate(const PodInfo& old_pod, const PodInfo& new_pod) const;

  // The last version (inclusive) for which the feature is a constraint; nothing: no end.
  virtual std::optional<Version> MaxVersion() const { return std::nullopt; }
};

}  // namespace drakkar::features
