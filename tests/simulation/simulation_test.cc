// DRAKKAR_SIMULATION_SEEDS: the last seed; DRAKKAR_SIMULATION_FIRST: the first one;
// DRAKKAR_SIMULATION_SEED: only this one.
#include "tests/simulation/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <optional>

#include "telemetry/log/log.h"

namespace drakkar::simulation {
namespace {

constexpr int kSteps = 40;
// For quick tests; the environment can set more.
constexpr std::uint64_t kSeeds = 100;

std::uint64_t FromEnvironment(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

// Silences the log for many seeds; a single seed logs everything.
struct Silence {
  Silence() {
    SetLogSink([](std::string_view) {});
  }
  ~Silence() { SetLogSink({}); }
};

// Stops at the first violation.
std::vector<std::string> RunOnce(Simulation::Options options, std::string* fingerprint = nullptr) {
  Simulation simulation(options);
  for (int i = 0; i < kSteps && simulation.violations().empty(); ++i) simulation.Step();
  if (simulation.violations().empty()) simulation.Settle();
  if (fingerprint != nullptr) *fingerprint = simulation.Fingerprint();
  return simulation.violations();
}

TEST(Simulation, InvariantsHoldForEverySeed) {
  const std::uint64_t only = FromEnvironment("DRAKKAR_SIMULATION_SEED", 0);
  const std::uint64_t first = only == 0 ? FromEnvironment("DRAKKAR_SIMULATION_FIRST", 1) : only;
  const std::uint64_t last = only == 0 ? FromEnvironment("DRAKKAR_SIMULATION_SEEDS", kSeeds) : only;
  std::optional<Silence> silence;
  if (only == 0) silence.emplace();
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    if (seed % 500 == 0) std::cout << "seed " << seed << std::endl;
    ASSERT_THAT(RunOnce({.seed = seed}), ::testing::IsEmpty())
        << "run again with DRAKKAR_SIMULATION_SEED=" << seed;
  }
}

TEST(Simulation, IsAFunctionOfTheSeed) {
  std::string first, second, other;
  (void)RunOnce({.seed = 7}, &first);
  (void)RunOnce({.seed = 7}, &second);
  (void)RunOnce({.seed = 8}, &other);
  EXPECT_EQ(first, second);
  EXPECT_NE(first, other);
}

TEST(Simulation, APlantedDoubleAllocationIsCaught) {
  int caught = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const std::string& violation : RunOnce({.seed = seed, .plant_double_allocation = true})) {
      if (violation.find(" is held by ") == violation.npos) continue;
      ++caught;
      break;
    }
  }
  EXPECT_GT(caught, 0);
}

TEST(Simulation, APlantedSchedulerThatDoesNotWaitIsCaught) {
  int caught = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const std::string& violation : RunOnce({.seed = seed, .plant_no_wait = true})) {
      if (violation.find(" is bound while ") == violation.npos) continue;
      ++caught;
      break;
    }
  }
  EXPECT_GT(caught, 0);
}

TEST(Simulation, PodsAreReallyBound) {
  std::size_t bound = 0, metadata = 0, driverless = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Simulation simulation({.seed = seed});
    for (int i = 0; i < kSteps; ++i) simulation.Step();
    simulation.Settle();
    bound += simulation.bound_pods();
    metadata += simulation.metadata_seen();
    driverless += simulation.driverless_pods();
  }
  EXPECT_GE(bound, 24u) << "a simulation in which nothing happens is useless";
  EXPECT_GE(metadata, 12u);
  EXPECT_GE(driverless, 1u);
}

}  // namespace
}  // namespace drakkar::simulation
