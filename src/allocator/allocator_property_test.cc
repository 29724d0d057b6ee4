#include <gtest/gtest.h>

#include <cstdlib>

#include "allocator/testing/harness.h"
#include "base/text/text.h"

namespace drakkar::allocator {
namespace {

// Number of random problems; `DRAKKAR_ALLOCATOR_CASES` overrides it.
int CaseCount() {
  const char* text = std::getenv("DRAKKAR_ALLOCATOR_CASES");
  return text == nullptr ? 2'000 : std::atoi(text);
}

// Runs the cases from this seed on; a failure prints the seed that reproduces it.
std::uint64_t FirstSeed() {
  const char* text = std::getenv("DRAKKAR_ALLOCATOR_SEED");
  return text == nullptr ? 1 : static_cast<std::uint64_t>(std::atoll(text));
}

std::string Print(const BruteForceAnswer& answer) {
  switch (answer.kind) {
    case BruteForceAnswer::Kind::kFatal:
      return "fatal";
    case BruteForceAnswer::Kind::kDoesNotFit:
      return "does not fit";
    case BruteForceAnswer::Kind::kFits:
      break;
  }
  return Join(answer.solution, "\n");
}

TEST(AllocatorProperties, FindTheSolutionOfAnExhaustiveSearch) {
  int fits = 0;
  const int cases = CaseCount();
  for (int i = 0; i < cases; ++i) {
    const std::uint64_t seed = FirstSeed() + static_cast<std::uint64_t>(i);
    SeededRandom random(seed);
    const RandomProblem problem = MakeRandomProblem(random);
    Harness harness(problem);
    for (const device::Node& node : problem.nodes) {
      const BruteForceAnswer expected = SolveByBruteForce(problem, node);
      const BruteForceAnswer actual = harness.Solve(problem, node.name);
      fits += expected.kind == BruteForceAnswer::Kind::kFits ? 1 : 0;
      ASSERT_EQ(Print(actual), Print(expected))
          << "DRAKKAR_ALLOCATOR_SEED=" << seed << " on " << node.name;
    }
  }
  // Guards against a generator that makes only impossible or only easy problems.
  EXPECT_GT(fits, cases / 5);
  EXPECT_LT(fits, cases);
  RecordProperty("fits", fits);
}

TEST(AllocatorProperties, DoNotDependOnTheOrderOfUpdates) {
  for (int i = 0; i < CaseCount() / 4; ++i) {
    const std::uint64_t seed = FirstSeed() + static_cast<std::uint64_t>(i);
    SeededRandom random(seed);
    RandomProblem problem = MakeRandomProblem(random);
    Harness first(problem);
    const std::string expected = Print(first.Solve(problem, "node-1"));
    for (std::size_t k = problem.slices.size(); k > 1; --k) {
      std::swap(problem.slices[k - 1], problem.slices[random.Below(k)]);
    }
    std::reverse(problem.allocated.begin(), problem.allocated.end());
    std::reverse(problem.nodes.begin(), problem.nodes.end());
    Harness second(problem);
    ASSERT_EQ(Print(second.Solve(problem, "node-1")), expected)
        << "DRAKKAR_ALLOCATOR_SEED=" << seed;
  }
}

// Renames pools, devices and nodes. This changes their order, so the solution may differ.
void Rename(RandomProblem& problem) {
  const auto rename = [](std::string& name) {
    if (!name.empty()) name = StrCat(std::string(name.rbegin(), name.rend()), "-renamed");
  };
  for (auto& shared : problem.slices) {
    auto slice = std::make_shared<device::Slice>(*shared);
    rename(slice->name);
    rename(slice->pool);
    rename(slice->target.node_name);
    for (device::Device& device : slice->devices) {
      rename(device.name);
      rename(device.target.node_name);
    }
    shared = std::move(slice);
  }
  for (device::Node& node : problem.nodes) rename(node.name);
  for (device::AllocationResult& allocation : problem.allocated) {
    for (device::DeviceResult& result : allocation.results) {
      rename(result.id.pool);
      rename(result.id.device);
    }
  }
}

TEST(AllocatorProperties, RenamingAndAddingIrrelevantObjectsChangesNoAnswer) {
  for (int i = 0; i < CaseCount() / 4; ++i) {
    const std::uint64_t seed = FirstSeed() + static_cast<std::uint64_t>(i);
    SeededRandom random(seed);
    RandomProblem problem = MakeRandomProblem(random);
    Harness original(problem);
    const auto expected = original.Solve(problem, "node-1").kind;

    Rename(problem);
    auto elsewhere = std::make_shared<device::Slice>();
    elsewhere->name = "elsewhere";
    elsewhere->driver = "a.example";
    elsewhere->pool = "elsewhere";
    elsewhere->generation = 1;
    elsewhere->slice_count = 1;
    elsewhere->target.node_name = "node-3";
    elsewhere->devices.emplace_back().name = "dev";
    problem.slices.push_back(std::move(elsewhere));
    problem.nodes.push_back({"node-3", {{"zone", "z3"}}, {}});
    auto unused = std::make_shared<device::DeviceClass>();
    unused->name = "unused";
    unused->selectors.push_back({"does not compile"});
    problem.classes.push_back(std::move(unused));
    Harness changed(problem);
    ASSERT_EQ(static_cast<int>(changed.Solve(problem, "1-edon-renamed").kind),
              static_cast<int>(expected))
        << "DRAKKAR_ALLOCATOR_SEED=" << seed;
  }
}

// After any sequence of changes, an allocator must answer like one created from the final state.
TEST(AllocatorProperties, AnswerAfterManyChangesLikeANewAllocator) {
  for (int i = 0; i < CaseCount() / 40; ++i) {
    const std::uint64_t seed = FirstSeed() + static_cast<std::uint64_t>(i);
    SeededRandom random(seed);
    RandomProblem world = MakeRandomProblem(random);
    Harness lasting(world);
    for (int change = 0; change < 30; ++change) {
      SeededRandom other_random(random.Next());
      const RandomProblem other = MakeRandomProblem(other_random);
      switch (random.Below(5)) {
        case 0: {  // a slice is added or replaced
          const auto& slice = other.slices[random.Below(other.slices.size())];
          std::erase_if(world.slices, [&](const auto& old) { return old->name == slice->name; });
          world.slices.push_back(slice);
          lasting.inventory.SetSlice(slice);
          break;
        }
        case 1:  // a slice is removed
          if (world.slices.size() < 2) break;
          lasting.inventory.RemoveSlice(world.slices.back()->name);
          world.slices.pop_back();
          break;
        case 2:  // devices are allocated or freed
          if (!world.allocated.empty() && random.Below(2) == 0) {
            lasting.allocated.Remove(world.allocated.back());
            world.allocated.pop_back();
          } else if (!other.allocated.empty()) {
            world.allocated.push_back(other.allocated[0]);
            lasting.allocated.Add(other.allocated[0]);
          }
          break;
        case 3:  // a node changes
          world.nodes[0] = other.nodes[random.Below(2)];
          world.nodes[0].name = "node-1";
          lasting.allocator.SetNode(world.nodes[0]);
          break;
        default:
          break;
      }
      // Uses new claims and claims that were searched before.
      world.claims = other.claims;
      if (random.Below(2) == 0) world.claims.resize(1);
      Harness fresh(world);
      for (const char* node : {"node-1", "node-2"}) {
        const std::string expected = Print(fresh.Solve(world, node));
        ASSERT_EQ(Print(lasting.Solve(world, node)), expected)
            << "DRAKKAR_ALLOCATOR_SEED=" << seed << " change " << change << " on " << node;
        ASSERT_EQ(Print(lasting.Solve(world, node)), expected);
      }
      const Problem problem = lasting.Prepare(world);
      Allocator::Verdicts verdicts;
      lasting.allocator.Filter(problem, {}, verdicts);
      for (const char* node : {"node-1", "node-2"}) {
        const NodeNumber number = *lasting.allocator.nodes().FindNode(node);
        const bool fits =
            verdicts.distinct[verdicts.by_node[number]].kind == Allocator::Verdict::Kind::kFits;
        ASSERT_EQ(fits, fresh.Solve(world, node).kind == BruteForceAnswer::Kind::kFits);
      }
    }
  }
}

}  // namespace
}  // namespace drakkar::allocator
