#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "answers/cluster/snapshot.h"
#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::answers {

// Gets several paths of the API server, concurrently if it can; answers in the order of the paths.
using GetPaths =
    std::function<std::vector<Result<api::TreePtr>>(const std::vector<std::string>& paths)>;

enum class SnapshotKind : std::uint8_t {
  kNodes,
  kPods,
  kClaims,
  kSlices,
  kClasses,
  kTaintRules,
  kLeases,
};
inline constexpr std::uint32_t Mask(SnapshotKind kind) {
  return std::uint32_t{1} << static_cast<unsigned>(kind);
}
inline constexpr std::uint32_t kEveryKind = 0x7f;

struct SnapshotOptions {
  std::uint32_t kinds = kEveryKind;
  std::string namespace_;  // where to look for pods and claims if the caller may not list them all
  WallTime now{};
};

// Reads the kinds as they are at one resource version: the first list names it, all others ask for
// exactly that one. A server that cannot do this is listed as it is, and `consistent` is false.
// What the caller may not read is left out with a note; only ResourceSlices and ResourceClaims are
// required where they are asked for.
Result<Snapshot> ReadSnapshot(const GetPaths& get, const SnapshotOptions& options);

// The items of a list as objects that share its memory.
Objects ItemsOf(const api::TreePtr& list);

// Asks the nodes for the health of their devices (an endpoint of Drakkar's node agent).
struct NodeAnswers {
  std::map<std::string, NodeHealth> health;  // by node
  std::vector<std::string> silent;           // nodes that did not answer
  std::string example;                       // why the first of them did not
};
NodeAnswers AskNodes(const GetPaths& get, const std::vector<std::string>& nodes);

// "3 of 20 nodes did not report device health (n1, n2, n3): why"; empty if all did.
std::string DescribeSilentNodes(const NodeAnswers& answers, std::size_t asked);

}  // namespace drakkar::answers
