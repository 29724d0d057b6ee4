#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cel/eval/node.h"

namespace drakkar::cel {

// What evaluations need in addition to the program, kept between them so that they do not allocate
// once warm. One per thread.
class Evaluator {
 public:
  Arena& arena() { return arena_; }

 private:
  friend class Program;
  Arena arena_;
  std::vector<Value> slots_;
  std::unique_ptr<bool[]> ready_;
  std::size_t ready_size_ = 0;
};

struct Evaluation {
  Value value;  // valid until the evaluator is used again
  std::uint64_t cost = 0;
  bool cancelled = false;  // the cost limit was exceeded: value is that error
};

// A variable an expression reads, and the constant keys it then selects: device, "attributes",
// "example.com", "model". What is below the last key may be read too.
struct AccessPath {
  std::size_t variable = 0;
  std::vector<std::string> keys;
};

// An expression ready to be evaluated, immutable and shareable between threads.
class Program {
 public:
  Evaluation Evaluate(Evaluator& evaluator, std::span<const Value> variables,
                      std::uint64_t cost_limit) const;
  const std::vector<AccessPath>& access_paths() const { return access_paths_; }

 private:
  friend class Planner;

  Arena constants_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<PreparedCall>> prepared_;
  const Node* root_ = nullptr;
  std::size_t slot_count_ = 0;
  bool strict_presence_ = false;
  std::vector<AccessPath> access_paths_;
};

}  // namespace drakkar::cel
