// Compares with Kubernetes' answers, in the catalog's `kubernetes` setting.

#include <cstdio>
#include <map>

#include <gtest/gtest.h>

#include "api/testing/vectors.h"
#include "features/catalog/catalog.h"

namespace drakkar::features {
namespace {

using Names = std::vector<std::string>;

// Cases of infer_update that we answer differently on purpose: Kubernetes' code panics there. We
// require nothing, and validation rejects the update. A listed case that Kubernetes answers is an
// error.
const std::map<std::string_view, std::string_view>& Deviations() {
  static const std::map<std::string_view, std::string_view> deviations = {
      {"init-removed", "an init container that is gone: index out of range there"},
      {"hostpath-to-mem", "a volume that was no emptyDir: nil pointer there"},
  };
  return deviations;
}

Names Strings(api::Value list) {
  Names names;
  for (api::Value name : list.elements()) names.emplace_back(name.str());
  return names;
}

std::optional<Version> VersionIn(api::Value text) {
  if (text.str().empty()) return std::nullopt;
  return ParseVersion(text.str()).value();
}

// {"mountOptions": true} and {"MountOptions": true} both occur.
RuntimeFeatures RuntimeIn(api::Value object) {
  RuntimeFeatures features;
  for (const api::MemberView member : object.members()) {
    if (member.name == "mountOptions" || member.name == "MountOptions") {
      features.mount_options = member.value.boolean();
    } else {
      features.user_namespaces_host_network = member.value.boolean();
    }
  }
  return features;
}

// The stand-in always says yes; only its last version matters.
class StandIn : public Feature {
 public:
  explicit StandIn(std::optional<Version> last) : last_(std::move(last)) {}
  std::string_view Name() const override { return "StandIn"; }
  FeatureRequirements Requirements() const override {
    return {
        .enabled_feature_gates = {"StandIn"}, .static_configuration = {}, .runtime_features = {}};
  }
  NeededBecauseOf InferForScheduling(const PodInfo&) const override { return ""; }
  NeededBecauseOf InferForUpdate(const PodInfo&, const PodInfo&) const override { return ""; }
  std::optional<Version> MaxVersion() const override { return last_; }

 private:
  std::optional<Version> last_;
};

class Vectors {
 public:
  // One case; `same` says whether our answer equals Kubernetes'.
  void Count(std::string_view file, std::size_t index, bool same) {
    if (same) {
      ++passed_;
      return;
    }
    ++failed_;
    ADD_FAILURE() << file << " case " << index;
  }
  void CountDeviation() { ++deviations_; }
  void Print() const {
    std::printf("nodedeclaredfeatures: %d passed, %d failed, %d listed deviations\n", passed_,
                failed_, deviations_);
  }

 private:
  int passed_ = 0;
  int failed_ = 0;
  int deviations_ = 0;
};

template <typename Check>
void RunFile(Vectors& vectors, std::string_view name, Check check) {
  const api::TreePtr tree = api::LoadVectors("nodedeclaredfeatures/" + std::string(name) + ".json");
  ASSERT_NE(tree, nullptr) << name;
  std::size_t index = 0;
  for (api::Value entry : tree->root().elements()) vectors.Count(name, index++, check(entry));
}

bool RegistryAgrees(const Framework& framework, api::Value entry) {
  const std::optional<std::size_t> index = framework.registry().FindIndex(entry["name"].str());
  if (!index) return false;
  const Feature& feature = framework.registry().feature(*index);
  const FeatureRequirements needs = feature.Requirements();
  return needs.enabled_feature_gates == Strings(entry["featureGates"]) &&
         needs.runtime_features == RuntimeIn(entry["runtimeFeatures"]) &&
         feature.MaxVersion() == VersionIn(entry["maxVersion"]);
}

bool DiscoverAgrees(const Framework& framework, api::Value entry) {
  NodeConfiguration node;
  std::map<std::string, bool, std::less<>> gates;
  for (const api::MemberView gate : entry["featureGates"].members()) {
    gates[std::string(gate.name)] = gate.value.boolean();
  }
  node.gate_enabled = LookupIn(std::move(gates));
  node.runtime_features = RuntimeIn(entry["runtimeFeatures"]);
  node.version = VersionIn(entry["nodeVersion"]);
  return framework.DiscoverNodeFeatures(node).names == Strings(entry["declared"]);
}

bool SetAgrees(const Framework& framework, const Result<FeatureSet>& set, api::Value entry) {
  if (!set.ok()) return set.error().message == entry["error"].str();
  return !entry["error"].has_value() &&
         framework.registry().Names(*set).value() == Strings(entry["required"]);
}

bool MatchAgrees(const Framework& framework, api::Value entry) {
  const Registry& registry = framework.registry();
  const Names required = Strings(entry["required"]);
  const Result<FeatureSet> mapped = registry.Map(required);
  if ((mapped.ok() ? "" : mapped.error().message) != entry["mapError"].str()) return false;
  const Result<MatchResult> result = framework.MatchNodeFeatureSet(
      registry.MapKnown(required), registry.MapKnown(Strings(entry["declared"])));
  return result.ok() && result->is_match == entry["match"].boolean() &&
         result->unsatisfied == Strings(entry["unsatisfied"]);
}

bool VersionBoundAgrees(api::Value entry) {
  FeatureList list;
  list.push_back(std::make_unique<StandIn>(VersionIn(entry["maxVersion"])));
  const Framework framework(Registry::Create(std::move(list)).value());
  const std::optional<Version> version = VersionIn(entry["version"]);
  NodeConfiguration node;
  node.version = version;
  node.gate_enabled = [](std::string_view) { return true; };
  return framework.DiscoverNodeFeatures(node).features.Get(0) == entry["declared"].boolean() &&
         framework.InferForPodScheduling({}, version).value().Get(0) ==
             entry["inferredForScheduling"].boolean() &&
         framework.InferForPodUpdate({}, {}, version).value().Get(0) ==
             entry["inferredForUpdate"].boolean();
}

TEST(FeaturesVector, MatchesKubernetes) {
  if (api::LoadVectors("nodedeclaredfeatures/registry.json") == nullptr) {
    GTEST_SKIP() << "no vectors: set DRAKKAR_VECTORS";
  }
  const Framework& framework = DefaultFramework(CatalogSetting::kKubernetes);
  Vectors vectors;
  RunFile(vectors, "registry", [&](api::Value entry) { return RegistryAgrees(framework, entry); });
  RunFile(vectors, "discover", [&](api::Value entry) { return DiscoverAgrees(framework, entry); });
  RunFile(vectors, "infer_scheduling", [&](api::Value entry) {
    return SetAgrees(
        framework,
        framework.InferForPodScheduling(PodInfoOf(entry["pod"]), VersionIn(entry["targetVersion"])),
        entry);
  });
  RunFile(vectors, "match", [&](api::Value entry) { return MatchAgrees(framework, entry); });
  RunFile(vectors, "version_bound", [&](api::Value entry) { return VersionBoundAgrees(entry); });

  const api::TreePtr updates = api::LoadVectors("nodedeclaredfeatures/infer_update.json");
  ASSERT_NE(updates, nullptr);
  std::size_t index = 0;
  for (api::Value entry : updates->root().elements()) {
    const Result<FeatureSet> required = framework.InferForPodUpdate(
        PodInfoOf(entry["oldPod"]), PodInfoOf(entry["pod"]), VersionIn(entry["targetVersion"]));
    const bool listed = Deviations().contains(entry["name"].str());
    EXPECT_EQ(listed, entry["panic"].exists()) << entry["name"].str();
    if (listed) {
      EXPECT_TRUE(required.ok() && required->IsEmpty()) << entry["name"].str();
      vectors.CountDeviation();
    } else {
      vectors.Count("infer_update", index, SetAgrees(framework, required, entry));
    }
    ++index;
  }
  vectors.Print();
}

}  // namespace
}  // namespace drakkar::features
