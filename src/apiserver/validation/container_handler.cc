#include "apiserver/validation/container_handler.h"

#include <vector>

#include "apiserver/validation/cause.h"
#include "apiserver/validation/value_rules.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::FieldPath;
using api::Value;

void CheckExec(FieldErrors& errors, const FieldPath& path, Value exec) {
  if (exec["command"].empty()) errors.push_back(Required(path.Child("command")));
}

void CheckHttpGet(FieldErrors& errors, const FieldPath& path, Value http) {
  RequireText(errors, path.Child("path"), http["path"].str());
  CheckPort(errors, path.Child("port"), http["port"]);
  const std::string_view scheme = http["scheme"].str();
  CheckOneOf(errors, path.Child("scheme"), scheme, {"HTTP", "HTTPS"});
  for (const Value header : http["httpHeaders"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    CheckHeaderName(errors, path.Child("httpHeaders"), header["name"].str());
  }
  const Value protocol = http["protocol"];
  if (!protocol.has_value()) return;
  CheckOneOf(errors, path.Child("protocol"), protocol.str(), {"HTTP1", "HTTP2"});
  if (protocol.str() != "HTTP2") return;
  if (scheme != "HTTP") {
    errors.push_back(
        Invalid(path.Child("protocol"), protocol.str(), "is only supported with HTTP (H2C)"));
  } else if (const std::string_view host = http["host"].str(); !host.empty()) {
    errors.push_back(
        Invalid(path.Child("host"), host, "must be empty when `protocol` is \"HTTP2\""));
  }
}

void CheckTcpSocket(FieldErrors& errors, const FieldPath& path, Value socket) {
  CheckPort(errors, path.Child("port"), socket["port"]);
}

void CheckGrpc(FieldErrors& errors, const FieldPath& path, Value grpc) {
  CheckPortNumber(errors, path.Child("port"), grpc["port"].integer());
  const Value mode = grpc["mode"];
  if (mode.has_value()) CheckOneOf(errors, path.Child("mode"), mode.str(), {"Plaintext", "TLS"});
}

// Exactly one handler. `grace_seconds` limits how long a hook may sleep; probes cannot.
void CheckHandler(FieldErrors& errors, const FieldPath& path, Value handler,
                  std::optional<std::int64_t> grace_seconds) {
  bool any = false;
  const auto check = [&](api::FieldName field, auto rule) {
    const Value value = handler[field];
    if (!value.has_value()) return;
    if (any) {
      errors.push_back(
          Forbidden(path.Child(field.view()), "may not specify more than 1 handler type"));
    } else {
      rule(errors, path.Child(field.view()), value);
    }
    any = true;
  };
  check("exec", CheckExec);
  check("httpGet", CheckHttpGet);
  check("tcpSocket", CheckTcpSocket);
  check("grpc", CheckGrpc);
  check("sleep", [&](FieldErrors&, const FieldPath& at, Value sleep) {
    const std::int64_t seconds = sleep["seconds"].integer();
    if (!grace_seconds || (seconds >= 0 && seconds <= *grace_seconds)) return;
    errors.push_back(
        Invalid(at, seconds,
                StrCat("must be non-negative and less than terminationGracePeriodSeconds (",
                       *grace_seconds, ")")));
  });
  if (!any) errors.push_back(Required(path, "must specify a handler type"));
}

void CheckProbe(FieldErrors& errors, const FieldPath& path, Value probe) {
  CheckHandler(errors, path, probe, std::nullopt);
  for (const api::FieldName field :
       api::FieldNames{"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
                       "failureThreshold"}) {
    CheckNotNegative(errors, path.Child(field.view()), probe[field].integer());
  }
  const Value grace = probe["terminationGracePeriodSeconds"];
  if (grace.has_value() && grace.integer() <= 0) {
    errors.push_back(Invalid(path.Child("terminationGracePeriodSeconds"), grace.integer(),
                             "must be greater than 0"));
  }
}

// A container that has failed a probe is killed at once, so one success is all it can get.
void CheckOneSuccess(FieldErrors& errors, const FieldPath& path, Value probe) {
  const std::int64_t threshold = probe["successThreshold"].integer();
  if (threshold != 1) {
    errors.push_back(Invalid(path.Child("successThreshold"), threshold, "must be 1"));
  }
}

const std::vector<std::string_view>& LinuxSignals() {
  static const std::vector<std::string_view> signals = {
      "SIGABRT",     "SIGALRM",     "SIGBUS",      "SIGCHLD",     "SIGCLD",      "SIGCONT",
      "SIGFPE",      "SIGHUP",      "SIGILL",      "SIGINT",      "SIGIO",       "SIGIOT",
      "SIGKILL",     "SIGPIPE",     "SIGPOLL",     "SIGPROF",     "SIGPWR",      "SIGQUIT",
      "SIGSEGV",     "SIGSTKFLT",   "SIGSTOP",     "SIGSYS",      "SIGTERM",     "SIGTRAP",
      "SIGTSTP",     "SIGTTIN",     "SIGTTOU",     "SIGURG",      "SIGUSR1",     "SIGUSR2",
      "SIGVTALRM",   "SIGWINCH",    "SIGXCPU",     "SIGXFSZ",     "SIGRTMIN",    "SIGRTMIN+1",
      "SIGRTMIN+2",  "SIGRTMIN+3",  "SIGRTMIN+4",  "SIGRTMIN+5",  "SIGRTMIN+6",  "SIGRTMIN+7",
      "SIGRTMIN+8",  "SIGRTMIN+9",  "SIGRTMIN+10", "SIGRTMIN+11", "SIGRTMIN+12", "SIGRTMIN+13",
      "SIGRTMIN+14", "SIGRTMIN+15", "SIGRTMAX-14", "SIGRTMAX-13", "SIGRTMAX-12", "SIGRTMAX-11",
      "SIGRTMAX-10", "SIGRTMAX-9",  "SIGRTMAX-8",  "SIGRTMAX-7",  "SIGRTMAX-6",  "SIGRTMAX-5",
      "SIGRTMAX-4",  "SIGRTMAX-3",  "SIGRTMAX-2",  "SIGRTMAX-1",  "SIGRTMAX"};
  return signals;
}

}  // namespace

void CheckProbes(FieldErrors& errors, const FieldPath& path, Value container) {
  if (const Value liveness = container["livenessProbe"]; liveness.has_value()) {
    const FieldPath at = path.Child("livenessProbe");
    CheckProbe(errors, at, liveness);
    CheckOneSuccess(errors, at, liveness);
  }
  if (const Value readiness = container["readinessProbe"]; readiness.has_value()) {
    const FieldPath at = path.Child("readinessProbe");
    CheckProbe(errors, at, readiness);
    const Value grace = readiness["terminationGracePeriodSeconds"];
    if (grace.has_value()) {
      errors.push_back(Invalid(at.Child("terminationGracePeriodSeconds"), grace.integer(),
                               "must not be set for readinessProbes"));
    }
  }
  if (const Value startup = container["startupProbe"]; startup.has_value()) {
    const FieldPath at = path.Child("startupProbe");
    CheckProbe(errors, at, startup);
    CheckOneSuccess(errors, at, startup);
  }
}

void CheckLifecycle(FieldErrors& errors, const FieldPath& path, Value lifecycle,
                    const HandlerContext& context) {
  for (const api::FieldName hook : api::FieldNames{"postStart", "preStop"}) {
    if (!lifecycle[hook].has_value()) continue;
    CheckHandler(errors, path.Child(hook.view()), lifecycle[hook], context.grace_seconds);
  }
  const Value signal = lifecycle["stopSignal"];
  if (!signal.has_value()) return;
  const FieldPath at = path.Child("stopSignal");
  if (context.os.empty()) {
    errors.push_back(Forbidden(at, "may not be set for containers with empty `spec.os.name`"));
  } else if (context.os == "windows") {
    CheckOneOf(errors, at, signal.str(), {"SIGKILL", "SIGTERM"});
  } else if (context.os == "linux") {
    CheckOneOf(errors, at, signal.str(), LinuxSignals());
  }
}

}  // namespace drakkar::apiserver
