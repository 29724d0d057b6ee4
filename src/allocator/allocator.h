#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/explain/explanation.h"
#include "allocator/features.h"
#include "allocator/outcome.h"
#include "allocator/request/problem.h"
#include "allocator/search/budget.h"
#include "allocator/view/node_index.h"
#include "allocator/view/shape_table.h"
#include "base/env/random.h"
#include "base/result/result.h"
#include "device/allocated_state.h"
#include "device/expression.h"
#include "device/inventory.h"

namespace drakkar::allocator {

// Finds devices for claims.
//
//   inventory.SetSlice(...); allocated.Add(...); allocator.SetNode(...);      // as things change
//   Problem problem = allocator.Prepare(claims, classes);                     // once per pod
//   allocator.Filter(problem, {}, verdicts);                                  // all nodes at once
//   allocator.Allocate(problem, "worker-0", {});                              // the chosen one
//
// Deterministic: equal input gives equal output in whatever order it arrived; only share ids are
// random. The claims of a problem are allocated together or not at all. Arguments are not modified.
//
// It is the only consumer of the change lists of inventory and allocated state, and lives on their
// loop. Bounds: see NodeIndex and PlanCache; each search is bounded by its budget.
class Allocator {
 public:
  struct Options {
    device::Inventory& inventory;
    device::AllocatedState& allocated;
    device::ExpressionCompiler& compiler;
    Random& random;
    Features features;
    // If false, every call searches, even if an equal node was searched for equal claims before.
    bool reuse_answers = true;
  };
  explicit Allocator(Options options);

  NodeNumber SetNode(device::Node node) { return index_.SetNode(std::move(node)); }
  void RemoveNode(std::string_view name) { index_.RemoveNode(name); }

  // Checks the claims and compiles them. If one is invalid, every use of the problem returns its
  // error.
  Problem Prepare(std::span<const std::shared_ptr<const device::Claim>> claims,
                  const ClassLookup& classes);

  // Allocates the claims on one known node. An error is fatal for the pod, not only for this node.
  Result<Outcome> Allocate(const Problem& problem, std::string_view node_name,
                           const SearchBudget& budget);

  // The answer for all nodes of one class.
  struct Verdict {
    enum class Kind : std::uint8_t { kFits, kUnsatisfiable, kBudgetExceeded, kFatal };
    Kind kind = Kind::kUnsatisfiable;
    Unsatisfiable why;           // if kUnsatisfiable
    std::optional<Error> error;  // if kFatal
    std::int64_t score = 0;      // sum over requests of 8 - index of the chosen alternative
    bool waits = false;          // some device has binding conditions to wait for
  };
  struct Verdicts {
    static constexpr std::uint32_t kNotANode = ~std::uint32_t{0};
    std::vector<std::uint32_t> by_node;  // per node number: index into `distinct`, or kNotANode
    std::vector<Verdict> distinct;
  };
  // Tries the claims on every known node: one search per class of nodes, none where the answer is
  // cached. Overwrites `verdicts`; reusing one saves its allocation.
  void Filter(const Problem& problem, const SearchBudget& budget, Verdicts& verdicts);

  // Which rules rejected which devices on this node, and which single rule is in the way. Errors
  // are those of Allocate.
  Result<Explanation> Explain(const Problem& problem, std::string_view node_name,
                              const SearchBudget& budget);

  const NodeIndex& nodes() const { return index_; }

 private:
  Result<NodeNumber> Find(std::string_view node_name) const;
  void SyncOutcomes(Plan& plan);
  // Searches, or returns the cached outcome; null if the budget ran out.
  Result<const CachedOutcome*> Solve(const Problem& problem, NodeNumber node,
                                     const SearchBudget& budget);
  Unsatisfiable WhyNot(const Problem& problem, NodeNumber node, const SearchBudget& budget);
  bool WouldFitWithout(const Problem& problem, NodeNumber node, Rule rule,
                       const SearchBudget& budget);
  Verdict Judge(const Problem& problem, NodeNumber node, const SearchBudget& budget);

  Options options_;
  ShapeTable shapes_;
  PlanCache plans_;
  NodeIndex index_;
  std::uint64_t last_steps_ = 0;
  CachedOutcome scratch_;  // when answers are not reused
  std::vector<std::uint32_t> verdict_of_class_;
};

}  // namespace drakkar::allocator
