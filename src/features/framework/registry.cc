#include "features/framework/registry.h"

#include <algorithm>

#include "base/text/text.h"
#include "features/framework/feature_name.h"

namespace drakkar::features {

Result<std::shared_ptr<const Registry>> Registry::Create(FeatureList features) {
  if (features.size() > kMaxRegisteredFeatures) {
    return InvalidArgument(StrCat("more than ", kMaxRegisteredFeatures, " features"));
  }
  std::shared_ptr<Registry> registry(new Registry());
  for (const auto& feature : features) CHECK(feature != nullptr);
  std::sort(features.begin(), features.end(),
            [](const auto& a, const auto& b) { return a->Name() < b->Name(); });
  for (std::size_t index = 0; index < features.size(); ++index) {
    const Feature& feature = *features[index];
    registry->by_name_.push_back({std::string(feature.Name()), index});
    for (std::string& alias : feature.Aliases()) {
      registry->by_name_.push_back({std::move(alias), index});
    }
    if (feature.Requirements().enabled_feature_gates.empty()) {
      return InvalidArgument(
          StrCat("feature ", Quote(feature.Name()), " must have at least one feature gate"));
    }
  }
  std::sort(registry->by_name_.begin(), registry->by_name_.end(),
            [](const NameEntry& a, const NameEntry& b) { return a.name < b.name; });
  const NameEntry* previous = nullptr;
  for (const NameEntry& entry : registry->by_name_) {
    RETURN_IF_ERROR(CheckFeatureName(entry.name));
    if (previous != nullptr && previous->name == entry.name) {
      return InvalidArgument(StrCat("feature ", Quote(entry.name), " is registered twice"));
    }
    previous = &entry;
  }
  registry->features_ = std::move(features);
  return std::shared_ptr<const Registry>(std::move(registry));
}

std::optional<std::size_t> Registry::FindIndex(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [](const NameEntry& entry, std::string_view wanted) { return entry.name < wanted; });
  if (found == by_name_.end() || found->name != name) return std::nullopt;
  return found->index;
}

Result<FeatureSet> Registry::Map(const std::vector<std::string>& names) const {
  FeatureSet set = NewSet();
  for (const std::string& name : names) {
    const std::optional<std::size_t> index = FindIndex(name);
    if (!index) return NotFound(StrCat("unknown feature ", name));
    set.Set(*index);
  }
  return set;
}

FeatureSet Registry::MapKnown(const std::vector<std::string>& names) const {
  FeatureSet set = NewSet();
  for (const std::string& name : names) {
    if (const std::optional<std::size_t> index = FindIndex(name)) set.Set(*index);
  }
  return set;
}

FeatureSet Registry::MapNodeFeatures(api::Value node) const {
  FeatureSet set = NewSet();
  for (api::Value name : node["status"]["declaredFeatures"].elements()) {
    if (const std::optional<std::size_t> index = FindIndex(name.str())) set.Set(*index);
  }
  return set;
}

Result<std::vector<std::string>> Registry::Names(const FeatureSet& set) const {
  if (set.size() != size()) {
    return InvalidArgument(
        StrCat("feature size mismatch! s.size=", set.size(), ", registry has ", size()));
  }
  std::vector<std::string> names;
  set.ForEach([&](std::size_t index) { names.emplace_back(feature(index).Name()); });
  return names;
}

std::vector<std::string> Registry::DeclaredNames(const FeatureSet& set) const {
  std::vector<std::string> names;
  for (const NameEntry& entry : by_name_) {
    if (set.Get(entry.index)) names.push_back(entry.name);
  }
  return names;
}

}  // namespace drakkar::features
