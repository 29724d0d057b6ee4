#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/rule.h"
#include "device/device_id.h"

namespace drakkar::allocator {

// How many devices one rule rejects for one request, with each device considered on its own.
struct Refusal {
  static constexpr std::size_t kMaxExamples = 3;

  Rule rule;
  std::size_t count = 0;
  std::vector<device::DeviceId> examples;
  std::uint32_t first = 0;  // position of the first rejected device in search order
};

struct RequestExplanation {
  std::string name;  // "request" or "request/subrequest"
  std::size_t wanted = 0;
  bool wants_all = false;
  std::size_t candidates = 0;     // devices that no rule rejects on its own
  std::vector<Refusal> refusals;  // in the order in which rules are checked
  // Devices that other claims hold and that would be candidates otherwise; at most kMaxHeld ids.
  static constexpr std::size_t kMaxHeld = 128;
  std::size_t held_count = 0;
  std::vector<device::DeviceId> held;
};

struct ClaimExplanation {
  std::string name;
  std::vector<RequestExplanation> requests;
};

// A pool of the node that offers no devices.
struct PoolProblem {
  device::PoolId pool;
  bool invalid = false;  // false: incomplete
  std::string reason;
};

// A rule without which the claims would fit, and what to change.
struct ClosestMiss {
  Rule rule;
  std::vector<std::string> remedies;  // see FindRemedies
};

// Why claims do or do not fit a node.
struct Explanation {
  std::string node;
  bool fits = false;
  bool out_of_budget = false;
  std::vector<ClaimExplanation> claims;
  std::vector<PoolProblem> pools;
  std::vector<ClosestMiss> closest;
};

// A short tree for humans:
//   node worker-0: does not fit
//   ├─ claim ns/gpu
//   │  └─ request gpu wants 2, 1 of 10 devices left
//   │     ├─ 6 held by another claim (e.g. drv/pool/gpu-0)
//   ...
//   └─ would fit but for: not selected by the request
//      └─ change claim ns/gpu: spec.devices.requests[0].exactly.selectors[0].cel.expression: ...
std::string RenderText(const Explanation& explanation);

}  // namespace drakkar::allocator
