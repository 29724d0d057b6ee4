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

// The port number of a probe or hook. A name is looked up in the container's ports.
Result<int> PortOf(api::Value container, api::Value port);

// The HTTP request that a probe's or hook's httpGet describes.
Result<HttpProbe> ReadHttpGet(api::Value container, api::Value http_get, const std::string& pod_ip);

// Whether this node can run the action of a probe or a hook.
bool CanRunProbe(api::Value probe, bool has_network);
bool CanRunHook(api::Value action, bool has_network);

// The probes of one container attempt: first startup, then liveness and readiness in parallel. Each
// probe runs every periodSeconds, never twice at a time, and counts consecutive results up to its
// thresholds. Loop-bound; must not outlive the runtime or the prober.
class ContainerProbes {
 public:
  struct Callbacks {
    std::function<void()> on_change;  // started() or ready() changed
    // Liveness or startup reached its failure threshold: the container must be killed, within the
    // probe's own grace period if it has one.
    std::function<void(const std::string& why, std::optional<std::int64_t> grace_seconds)> on_dead;
    std::function<void(const std::string& message)> on_failure;  // each failed attempt
    std::function<void(const std::string& message)> on_warning;  // for attempts that succeeded
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

  // Whether the container has any probe.
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
