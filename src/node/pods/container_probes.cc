#include "node/pods/container_probes.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr std::size_t kMaxShownOutput = 1'024;

Duration Seconds(Value spec, api::FieldName field, std::int64_t fallback) {
  const std::int64_t value = spec[field].integer();
  return std::chrono::seconds(value > 0 ? value : fallback);
}

}  // namespace

Result<int> PortOf(Value container, Value port) {
  std::optional<std::int64_t> number = port.optional_integer();
  if (!number) number = ParseInt64(port.str());
  if (!number) {
    for (Value each : container["ports"].elements()) {
      if (each["name"].str() == port.str()) number = each["containerPort"].integer();
    }
  }
  if (!number) {
    return InvalidArgument(
        StrCat("container ", container["name"].str(), " has no port named ", Quote(port.str())));
  }
  if (*number < 1 || *number > 65535)
    return InvalidArgument(StrCat("invalid port number: ", *number));
  return static_cast<int>(*number);
}

Result<HttpProbe> ReadHttpGet(Value container, Value http_get, const std::string& pod_ip) {
  ASSIGN_OR_RETURN(const int port, PortOf(container, http_get["port"]));
  HttpProbe probe;
  probe.scheme = std::string(http_get["scheme"].str("HTTP"));
  probe.host = http_get["host"].str().empty() ? pod_ip : std::string(http_get["host"].str());
  probe.port = port;
  probe.path = std::string(http_get["path"].str());
  for (Value header : http_get["httpHeaders"].elements()) {
    probe.headers.emplace_back(header["name"].str(), header["value"].str());
  }
  return probe;
}

bool CanRunProbe(Value probe, bool has_network) {
  if (probe["exec"].has_value()) return true;
  return has_network && (probe["httpGet"].has_value() || probe["tcpSocket"].has_value() ||
                         probe["grpc"].has_value());
}

// The API accepts tcpSocket for a hook, and the hook then fails when it runs.
bool CanRunHook(Value action, bool has_network) {
  return action["exec"].has_value() || action["sleep"].has_value() ||
         action["tcpSocket"].has_value() || (action["httpGet"].has_value() && has_network);
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

void ContainerProbes::Begin(Kind kind, api::FieldName field) {
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
  std::function<void(Outcome)> finish =
      lifetime_.Guard([this, &probe](const Outcome& outcome) { Finish(probe, outcome); });
  if (const Value exec = probe.spec["exec"]; exec.has_value()) {
    std::vector<std::string> command;
    for (Value word : exec["command"].elements()) command.emplace_back(word.str());
    return options_.runtime.ExecSync(
        options_.container_id, std::move(command), timeout, [finish](Result<ExecResult> result) {
          if (!result.ok()) return finish({result.error().message, ""});
          if (result->exit_code == 0) return finish({});
          finish({(result->output + result->error_output).substr(0, kMaxShownOutput), ""});
        });
  }
  if (!CanRunProbe(probe.spec, options_.network != nullptr)) return;  // reported at admission
  RunOverNetwork(probe, timeout, std::move(finish));
}

void ContainerProbes::RunOverNetwork(Probe& probe, Duration timeout,
                                     std::function<void(Outcome)> finish) {
  const Value container = options_.container;
  if (const Value http = probe.spec["httpGet"]; http.has_value()) {
    auto request = ReadHttpGet(container, http, options_.pod_ip);
    if (!request.ok()) return finish({request.error().message, ""});
    return options_.network->Get(
        std::move(*request), timeout, [finish = std::move(finish)](Result<HttpAnswer> answer) {
          if (!answer.ok()) return finish({answer.error().message, ""});
          if (answer->status < 200 || answer->status >= 400) {
            return finish({StrCat("HTTP probe failed with statuscode: ", answer->status), ""});
          }
          if (answer->status < 300) return finish({});
          finish({std::nullopt, StrCat("Probe terminated redirects, Response body: ",
                                       answer->body.substr(0, kMaxShownOutput))});
        });
  }
  if (const Value tcp = probe.spec["tcpSocket"]; tcp.has_value()) {
    const auto port = PortOf(container, tcp["port"]);
    if (!port.ok()) return finish({port.error().message, ""});
    const std::string host =
        tcp["host"].str().empty() ? options_.pod_ip : std::string(tcp["host"].str());
    return options_.network->Connect(host, *port, timeout,
                                     [finish = std::move(finish)](Result<void> result) {
                                       if (!result.ok())
                                         return finish({result.error().message, ""});
                                       finish({});
                                     });
  }
  const Value grpc = probe.spec["grpc"];
  const auto port = PortOf(container, grpc["port"]);
  if (!port.ok()) return finish({port.error().message, ""});
  options_.network->CheckGrpc(
      options_.pod_ip, *port, std::string(grpc["service"].str()), timeout,
      [finish = std::move(finish)](Result<std::string> status) {
        if (!status.ok() && status.error().code == ErrorCode::kUnimplemented) {
          return finish({StrCat("error: this server does not implement the grpc health protocol "
                                "(grpc.health.v1.Health): ",
                                status.error().message),
                         ""});
        }
        if (!status.ok() && status.error().code == ErrorCode::kDeadlineExceeded) {
          return finish({StrCat("timeout: ", status.error().message), ""});
        }
        if (!status.ok()) {
          return finish({StrCat("error: health rpc probe failed: ", status.error().message), ""});
        }
        if (*status == "SERVING") return finish({});
        finish({StrCat("service unhealthy (responded with ", Quote(*status), ")"), ""});
      });
}

void ContainerProbes::Finish(Probe& probe, const Outcome& outcome) {
  if (dead_) return;
  const char* name = probe.kind == Kind::kStartup    ? "Startup"
                     : probe.kind == Kind::kLiveness ? "Liveness"
                                                     : "Readiness";
  if (outcome.failure) {
    probe.successes = 0;
    ++probe.failures;
    callbacks_.on_failure(StrCat(name, " probe failed: ", *outcome.failure));
  } else {
    probe.failures = 0;
    ++probe.successes;
  }
  if (!outcome.warning.empty()) {
    callbacks_.on_warning(StrCat(name, " probe warning: ", outcome.warning));
  }
  const bool failed =
      probe.failures >= std::max<std::int64_t>(probe.spec["failureThreshold"].integer(3), 1);
  const bool succeeded =
      probe.successes >= std::max<std::int64_t>(probe.spec["successThreshold"].integer(1), 1);
  // Schedule first: the callback may destroy this object.
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
    callbacks_.on_dead(StrCat("failed ", ToLower(name), " probe"),
                       probe.spec["terminationGracePeriodSeconds"].optional_integer());
  }
}

}  // namespace drakkar::node
