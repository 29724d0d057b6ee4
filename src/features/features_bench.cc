// Matches a pod's requirements against many nodes: time per node by number of registered features.

#include <benchmark/benchmark.h>

#include <random>

#include "features/catalog/catalog.h"

namespace drakkar::features {
namespace {

class Numbered : public Feature {
 public:
  explicit Numbered(std::size_t number) : name_("Feature" + std::to_string(number)) {}
  std::string_view Name() const override { return name_; }
  FeatureRequirements Requirements() const override {
    return {.enabled_feature_gates = {"Gate"}, .static_configuration = {}, .runtime_features = {}};
  }

 private:
  std::string name_;
};

// Filter as in the scheduler: one subset test per node, with sets mapped in advance.
void FilterNodes(benchmark::State& state) {
  const auto features = static_cast<std::size_t>(state.range(0));
  const auto nodes = static_cast<std::size_t>(state.range(1));
  FeatureList list;
  for (std::size_t i = 0; i < features; ++i) list.push_back(std::make_unique<Numbered>(i));
  const std::shared_ptr<const Registry> registry = Registry::Create(std::move(list)).value();
  std::mt19937_64 random(1);
  std::vector<FeatureSet> declared(nodes, registry->NewSet());
  for (FeatureSet& set : declared) {
    for (std::size_t i = 0; i < features; ++i) set.Set(i, random() % 4 != 0);
  }
  FeatureSet required = registry->NewSet();
  required.Set(features / 2);
  required.Set(features - 1);
  for (auto _ : state) {
    std::size_t fitting = 0;
    for (const FeatureSet& set : declared) fitting += required.IsSubsetOf(set) ? 1 : 0;
    benchmark::DoNotOptimize(fitting);
  }
  state.counters["per_node"] =
      benchmark::Counter(static_cast<double>(nodes), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}
BENCHMARK(FilterNodes)->ArgsProduct({{5, 20, 40, 100}, {5'000, 100'000}})->Name("features.filter");

}  // namespace
}  // namespace drakkar::features
