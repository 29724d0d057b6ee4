#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "features/framework/feature.h"
#include "features/framework/feature_set.h"

namespace drakkar::features {

using FeatureList = std::vector<std::unique_ptr<const Feature>>;

// More would be refused: the list goes into the status of every node.
constexpr std::size_t kMaxRegisteredFeatures = 1'024;

// All features that a process knows, built once and immutable. Features are ordered by name, and
// the place in that order is the feature's bit. An alias leads to the bit of its feature.
class Registry {
 public:
  // Refuses a feature without a gate, with a malformed name, and a name that comes twice.
  static Result<std::shared_ptr<const Registry>> Create(FeatureList features);

  std::size_t size() const { return features_.size(); }
  const Feature& feature(std::size_t index) const { return *features_[index]; }
  std::optional<std::size_t> FindIndex(std::string_view name) const;  // name or alias

  FeatureSet NewSet() const { return FeatureSet(size()); }
  // Names or aliases, in any order; "unknown feature X" for any other.
  Result<FeatureSet> Map(const std::vector<std::string>& names) const;
  // Unknown names are left out: nodes may be newer than we are.
  FeatureSet MapKnown(const std::vector<std::string>& names) const;
  // What node.status.declaredFeatures says; empty if it says nothing.
  FeatureSet MapNodeFeatures(api::Value node) const;

  // Names without aliases, ascending: for messages.
  Result<std::vector<std::string>> Names(const FeatureSet& set) const;
  // Names and aliases, ascending: for node.status.declaredFeatures. The set must be of this registry.
  std::vector<std::string> DeclaredNames(const FeatureSet& set) const;

 private:
  struct NameEntry {
    std::string name;
    std::size_t index;
  };

  Registry() = default;

  FeatureList features_;           // ascending by name
  std::vector<NameEntry> by_name_;  // names and aliases, ascending
};

}  // namespace drakkar::features
