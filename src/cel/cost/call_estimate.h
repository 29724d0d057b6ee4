#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cel/ast/expr.h"
#include "cel/cost/estimate.h"
#include "cel/types/type.h"

namespace drakkar::cel {

// The properties of a call's operand that affect costs.
struct CostNode {
  const Expr* expr = nullptr;  // null for an element of a list
  TypeRef type;
  std::vector<std::string> path;
  std::optional<Estimate> size;
};

struct CallEstimate {
  Estimate cost;
  std::optional<Estimate> result_size;
};

struct CallOperands {
  const CostNode* target = nullptr;
  std::vector<CostNode> args;
  std::function<std::optional<Estimate>(std::span<const std::string> path)> size_of_path;

  Estimate SizeOf(const CostNode& node) const {
    if (node.size) return *node.size;
    if (size_of_path && !node.path.empty()) {
      if (const std::optional<Estimate> size = size_of_path(node.path)) return *size;
    }
    return Estimate::Unknown();
  }
};

// The rules of the extension libraries and of Kubernetes, without the cost of the operands. Nothing
// if CEL's own rules apply.
std::optional<CallEstimate> EstimateLibraryCall(std::string_view function,
                                                std::string_view overload_id,
                                                const CallOperands& operands);

}  // namespace drakkar::cel
