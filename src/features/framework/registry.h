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

// The list is part of every node's status. More features are rejected.
constexpr std::size_t kMaxRegisteredFeatures = 1'024;

// All features that a process knows; immutable. Features are sorted by name, and the index is the
// feature's bit. An alias maps to the bit of its feature.
class Registry {
 public:
  // Rejects features without a gate, malformed names and duplicate names.
  static Result<std::shared_ptr<const Registry>> Create(FeatureList features);

  std::size_t size() const { return features_.size(); }
  const Feature& feature(std::size_t index) const { return *features_[index]; }
  std::optional<std::size_t> FindIndex(std::string_view name) const;  // name or alias

  FeatureSet NewSet() const { return FeatureSet(size()); }
  // Maps names or aliases in any order; fails with "unknown feature X".
  Result<FeatureSet> Map(const std::vector<std::string>& names) const;
  // Ignores unknown names: nodes may be newer than we are.
  FeatureSet MapKnown(const std::vector<std::string>& names) const;
  // Maps node.status.declaredFeatures; empty if it is absent.
  FeatureSet MapNodeFeatures(api::Value node) const;

  // Names without aliases, sorted; for messages.
  Result<std::vector<std::string>> Names(const FeatureSet& set) const;
  // Names and aliases, sorted; for node.status.declaredFeatures. The set must belong to this
  // registry.
  std::vector<std::string> DeclaredNames(const FeatureSet& set) const;

 private:
  struct NameEntry {
    std::string name;
    std::size_t index;
  };

  Registry() = default;

  FeatureList features_;            // ascending by name
  std::vector<NameEntry> by_name_;  // names and aliases, ascending
};

}  // namespace drakkar::features
