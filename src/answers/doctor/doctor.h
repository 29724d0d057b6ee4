#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "answers/cluster/snapshot.h"

namespace drakkar::device {
class ExpressionCompiler;
}

namespace drakkar::answers {

// What is wrong with a cluster, most urgent first, and what to do about it.

enum class Severity : std::uint8_t {
  kError,    // something does not work now
  kWarning,  // something will stop working, or does not do what its owner expects
};

struct Finding {
  Severity severity = Severity::kError;
  std::string check;                 // "incomplete-pools"
  std::string what;                  // one sentence without a period
  std::string advice;                // what to do
  std::size_t count = 0;             // of objects concerned
  std::vector<std::string> objects;  // at most kMaxObjects, each with its reason

  static constexpr std::size_t kMaxObjects = 100;
};

// What a Drakkar node reports about its drivers (/drivers on its port).
struct NodeDrivers {
  std::map<std::string, bool> drivers;                          // whether it is connected
  std::vector<std::pair<std::string, std::string>> cdi_errors;  // file, reason
};

struct CertificateFact {
  std::string what;  // "client certificate of the kubeconfig"
  WallTime not_after{};
  std::string renewal;  // how to renew it
};

// What Drakkar's API server reports about itself (/drakkar/status).
struct ServerFacts {
  std::map<std::string, bool> gates;
  WallTime now{};
  struct Unattended {
    std::string kind;
    std::size_t count = 0;
    std::string warning;
  };
  std::vector<Unattended> unattended;
  std::vector<CertificateFact> certificates;
};
// Fails if it is something else.
std::optional<ServerFacts> ReadServerFacts(api::Value status);
NodeDrivers ReadNodeDrivers(api::Value answer);

struct DoctorInput {
  const Snapshot& snapshot;
  device::ExpressionCompiler& compiler;
  std::map<std::string, NodeDrivers> nodes = {};     // nodes that answered
  std::optional<ServerFacts> server = {};            // nothing: another API server
  std::map<std::string, bool> scheduler_gates = {};  // empty: unknown
  std::vector<CertificateFact> certificates = {};    // of the caller
  std::vector<std::string> notes = {};               // what could not be checked
};

struct DoctorAnswer {
  std::vector<Finding> findings;  // errors first, then by the number of objects
  std::vector<std::string> notes;
  std::size_t checks = 0;  // that were made

  std::size_t CountOf(Severity severity) const;
};

DoctorAnswer Diagnose(const DoctorInput& input);

// How long these states are normal.
inline constexpr Duration kTerminatingGrace = std::chrono::minutes(2);  // beyond the pod's own
inline constexpr Duration kUnusedClaimGrace = std::chrono::minutes(5);
inline constexpr Duration kExpirySoon = std::chrono::hours(24 * 14);
inline constexpr Duration kMaxClockSkew = std::chrono::seconds(5);

}  // namespace drakkar::answers
