#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/meta/object.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "node/probes/network_prober.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// The number that a probe or a hook means: of the container's port if it is a name.
Result<int> PortOf(api::Value container, api::Value port);

// The request of a probe's or a hook's httpGet.
Result<HttpProbe> ReadHttpGet(api::Value container, api::Value http_get, const std::string& pod_ip);

// Whether this node can run the action of a probe or a hook.
bool CanRunProbe(api::Value probe, bool has_network);
bool CanRunHook(api::Value action, bool has_network);

// The probes of one run of one container: startup first, then liveness and readiness side by side.
// Each runs every periodSeconds, one at a time, and counts results in a row up to its thresholds.
// Loop-bound; it must not outlive the runtime or the prober.
class ContainerProbes {
 public:
  struct Callbacks {
    std::function<void()> on_change;  // started() or ready() is another
    // Liveness or startup has failed too often: the container is to be killed, within the probe's
    // own grace period if it has one.
    std::function<void(const std::string& why, std::optional<std::int64_t> grace_seconds)> on_dead;
    std::function<void(const std::string& message)> on_failure;  // each failed attempt
    std::function<void(const std::string& message)> on_warning;  // of attempts that succeeded
  };
  struct Options {
    EventLoop& loop;
    Runtime& runtime;
    NetworkProber* network = nullptr;
    api::ObjectPtr pod;  // keeps `container` alive
    api::Value container;
    std::string container_id;
    std::string pod_ip;
    WallTime started_at{};
  };
  ContainerProbes(Options options, Callbacks callbacks);
  ~ContainerProbes();

  // Whether there is any probe this node can run.
  static bool HasProbes(api::Value container);

  const std::string& container_id() const { return options_.container_id; }
  bool started() const { return started_; }
  bool ready() const { return started_ && ready_; }

 private:
  enum class Kind { kStartup, kLiveness, kReadiness };
  struct Outcome {
    std::optional<std::string> failure;
    std::string warning;
  };
  struct Probe {
    Kind kind;
    api::Value spec;
    std::int64_t successes = 0;
    std::int64_t failures = 0;
    TimerHandle timer;
  };
  void Begin(Kind kind, api::FieldName field);
  void BeginAfterStartup();
  void Schedule(Probe& probe, Duration delay);
  void Run(Probe& probe);
  void RunOverNetwork(Probe& probe, Duration timeout, std::function<void(Outcome)> finish);
  void Finish(Probe& probe, const Outcome& outcome);

  const Options options_;
  const Callbacks callbacks_;
  std::vector<std::unique_ptr<Probe>> probes_;
  bool started_ = true;
  bool ready_ = true;
  bool dead_ = false;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
