#include "node/pods/container_probes.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr std::size_t kMaxShownOutput = 1'024;

Duration Seconds(Value spec, const char* field, std::int64_t fallback) {
  const std::int64_t value = spec[field].integer();
  return std::chrono::seconds(value > 0 ? value : fallback);
}

}  // namespace

std::optional<int> PortOf(Value container, Value port) {
  if (auto number = port.optional_integer()) return static_cast<int>(*number);
  if (auto number = ParseInt64(port.str())) return static_cast<int>(*number);
  for (Value each : container["ports"].elements()) {
    if (each["name"].str() == port.str()) return static_cast<int>(each["containerPort"].integer());
  }
  return std::nullopt;
}

bool CanRunHook(Value action, bool has_network) {
  return action["exec"].has_value() || action["sleep"].has_value() ||
         (action["httpGet"].has_value() && has_network);
}

bool ContainerProbes::HasProbes(Value container) {
  return container["startupProbe"].has_value() || container["livenessProbe"].has_value() ||
         container["readinessProbe"].has_value();
}

ContainerProbes::ContainerProbes(Options options, Callbacks callbacks)
    : options_(std::move(options)), callbacks_(std::move(callbacks)) {
  ready_ = !options_.container["readinessProbe"].has_value();
  if (options_.container["startupProbe"].has_value()) {
    started_ = false;
    Begin(Kind::kStartup, "startupProbe");
  } else {
    BeginAfterStartup();
  }
}

ContainerProbes::~ContainerProbes() = default;

void ContainerProbes::BeginAfterStartup() {
  if (options_.container["livenessProbe"].has_value()) Begin(Kind::kLiveness, "livenessProbe");
  if (options_.container["readinessProbe"].has_value()) Begin(Kind::kReadiness, "readinessProbe");
}

void ContainerProbes::Begin(Kind kind, const char* field) {
  probes_.push_back(
      std::make_unique<Probe>(Probe{.kind = kind, .spec = options_.container[field]}));
  Probe& probe = *probes_.back();
  const WallTime first = options_.started_at + Seconds(probe.spec, "initialDelaySeconds", 0);
  Schedule(probe, std::max<Duration>(first - options_.loop.clock().Now(), Duration::zero()));
}

void ContainerProbes::Schedule(Probe& probe, Duration delay) {
  probe.timer = options_.loop.RunAfter(delay, [this, &probe] { Run(probe); });
}

void ContainerProbes::Run(Probe& probe) {
  const Duration timeout = Seconds(probe.spec, "timeoutSeconds", 1);
  auto finish = [this, &probe,
                 alive = std::weak_ptr<int>(alive_)](std::optional<std::string> failure) {
    if (alive.lock()) Finish(probe, std::move(failure));
  };
  if (const Value exec = probe.spec["exec"]; exec.has_value()) {
    std::vector<std::string> command;
    for (Value word : exec["command"].elements()) command.emplace_back(word.str());
    return options_.runtime.ExecSync(
        options_.container_id, std::move(command), timeout, [finish](Result<ExecResult> result) {
          if (!result.ok()) return finish(result.error().message);
          if (result->exit_code == 0) return finish(std::nullopt);
          finish((result->output + result->error_output).substr(0, kMaxShownOutput));
        });
  }
  const Value http = probe.spec["httpGet"];
  const Value tcp = probe.spec["tcpSocket"];
  const Value target = http.has_value() ? http : tcp;
  if (options_.network == nullptr || !target.has_value())
    return;  // reported when the pod was admitted
  const auto port = PortOf(options_.container, target["port"]);
  if (!port) return finish(StrCat("no port named ", target["port"].str()));
  const std::string host =
      target["host"].str().empty() ? options_.pod_ip : std::string(target["host"].str());
  if (tcp.has_value()) {
    return options_.network->Connect(host, *port, timeout, [finish](Result<void> result) {
      finish(result.ok() ? std::nullopt : std::optional<std::string>(result.error().message));
    });
  }
  NetworkProber::Http request{.scheme = std::string(http["scheme"].str("HTTP")),
                              .host = host,
                              .port = *port,
                              .path = std::string(http["path"].str("/"))};
  for (Value header : http["httpHeaders"].elements()) {
    request.headers.emplace_back(header["name"].str(), header["value"].str());
  }
  options_.network->Get(std::move(request), timeout, [finish](Result<int> status) {
    if (!status.ok()) return finish(status.error().message);
    if (*status >= 200 && *status < 400) return finish(std::nullopt);
    finish(StrCat("HTTP probe failed with statuscode: ", *status));
  });
}

void ContainerProbes::Finish(Probe& probe, std::optional<std::string> failure) {
  if (dead_) return;
  const char* name = probe.kind == Kind::kStartup    ? "Startup"
                     : probe.kind == Kind::kLiveness ? "Liveness"
                                                     : "Readiness";
  if (failure) {
    probe.successes = 0;
    ++probe.failures;
    callbacks_.on_failure(StrCat(name, " probe failed: ", *failure));
  } else {
    probe.failures = 0;
    ++probe.successes;
  }
  const bool failed =
      probe.failures >= std::max<std::int64_t>(probe.spec["failureThreshold"].integer(3), 1);
  const bool succeeded =
      probe.successes >= std::max<std::int64_t>(probe.spec["successThreshold"].integer(1), 1);
  // Scheduled before anybody is told: whoever is told may destroy us.
  const bool over = probe.kind == Kind::kStartup && succeeded;
  if (over) {
    probe.timer.reset();
    started_ = true;
    BeginAfterStartup();
    return callbacks_.on_change();
  }
  Schedule(probe, Seconds(probe.spec, "periodSeconds", 10));
  if (probe.kind == Kind::kReadiness) {
    const bool before = ready_;
    if (failed) ready_ = false;
    if (succeeded) ready_ = true;
    if (ready_ != before) callbacks_.on_change();
    return;
  }
  if (failed) {
    dead_ = true;
    callbacks_.on_dead(StrCat("failed ", ToLower(name), " probe"));
  }
}

}  // namespace drakkar::node
