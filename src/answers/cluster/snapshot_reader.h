#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "answers/cluster/snapshot.h"
#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::answers {

// Fetches several paths from the API server, concurrently if possible. Results are in the order of
// the paths.
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
  kNamespaces,
};
inline constexpr std::uint32_t Mask(SnapshotKind kind) {
  return std::uint32_t{1} << static_cast<unsigned>(kind);
}
inline constexpr std::uint32_t kEveryKind = 0xff;

struct SnapshotOptions {
  std::uint32_t kinds = kEveryKind;
  std::string namespace_;  // for pods and claims if the caller may not list all of them
  WallTime now{};
};

// Reads the kinds at one resource version: the first list determines it, and all others request
// exactly that version. If the server does not support this, lists are read as they are and
// `consistent` is false. Kinds that the caller may not read are omitted with a note; only requested
// ResourceSlices and ResourceClaims are mandatory.
Result<Snapshot> ReadSnapshot(const GetPaths& get, const SnapshotOptions& options);

// The items of a list, as objects that share its memory.
Objects ItemsOf(const api::TreePtr& list);

// The path at which Drakkar's node agent reports the health of its devices, and what it returns.
std::string NodeHealthPath(std::string_view node);
NodeHealth ReadNodeHealth(api::Value answer);

// Asks the nodes for the health of their devices.
struct NodeAnswers {
  std::map<std::string, NodeHealth> health;  // by node
  std::vector<std::string> silent;           // nodes that did not answer
  std::string example;                       // why the first of them did not answer
};
NodeAnswers AskNodes(const GetPaths& get, const std::vector<std::string>& nodes);

// "3 of 20 nodes did not report device health (n1, n2, n3): why"; empty if all did.
std::string DescribeSilentNodes(const NodeAnswers& answers, std::size_t asked);

}  // namespace drakkar::answers
