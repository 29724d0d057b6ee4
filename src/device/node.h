#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::device {

// The feature with which a node declares that it can skip node operations (KEP-5945). It has two
// names: the proposal's, which we show, and the one in Kubernetes 1.37.
inline constexpr char kOptionalNodePreparation[] = "DraOptionalNodePreparation";
inline constexpr char kOptionalNodeOperations[] = "DRAOptionalNodeOperations";

// The parts of a node that device rules use. `labels` is ordered so that nothing depends on
// hashing.
struct Node {
  std::string name;
  std::map<std::string, std::string, std::less<>> labels;
  std::vector<std::string> declared_features;

  bool operator==(const Node&) const = default;
};

// Whether the node declares that it can skip node operations. The second form takes a Node object.
bool CanSkipOperations(const Node& node);
bool CanSkipOperations(api::Value node);

}  // namespace drakkar::device
