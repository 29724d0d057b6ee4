#include "cmd/drakkar/daemon.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <map>

#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("drakkar");

// Starts the parts in order, waits for a signal, and stops them in reverse order.
class Runner {
 public:
  Runner(UvLoop& loop, std::vector<std::unique_ptr<Part>> parts, cli::Console& console,
         std::function<void()> on_ready)
      : loop_(loop), parts_(std::move(parts)), console_(console), on_ready_(std::move(on_ready)) {}

  int Run() {
    auto stop = [this] { Stop(); };
    TimerHandle interrupt = loop_.OnSignal(SIGINT, stop);
    TimerHandle terminate = loop_.OnSignal(SIGTERM, stop);
    loop_.Post([this] { StartNext(); });
    loop_.Run();
    interrupt.reset();
    terminate.reset();
    parts_.clear();
    return exit_code_;
  }

 private:
  void StartNext() {
    if (stopping_) return;
    if (begun_ == parts_.size()) {
      on_ready_();
      return;
    }
    // Counted before it is up, because a part that is stopped during its start already has threads
    // and files.
    Part& part = *parts_[begun_++];
    part.on_fatal = [this, &part](const Error& error) { Fail(part, error, [] {}); };
    part.Start([this, &part](Result<void> result) {
      if (stopping_) return;
      if (!result.ok()) return Fail(part, result.error(), [this] { StartNext(); });
      StartNext();
    });
  }

  void Fail(Part& part, const Error& error, std::function<void()> go_on) {
    if (stopping_ || given_up_.contains(&part)) return;
    if (!part.is_vital()) {
      console_.Error(StrCat(part.name(), ": ", error.message,
                            "; stopped it, and the other components keep running"));
      given_up_[&part] = false;
      return part.Stop([this, &part, go_on = std::move(go_on)] {
        given_up_[&part] = true;
        if (stopping_) {
          if (awaited_ == &part) StopNext();
          return;
        }
        go_on();
      });
    }
    console_.Error(StrCat(part.name(), ": ", error.message));
    exit_code_ = cli::kExitFailure;
    Stop();
  }

  void Stop() {
    if (stopping_) return;
    stopping_ = true;
    StopNext();
  }

  void StopNext() {
    if (begun_ == 0) {
      loop_.Stop();
      return;
    }
    --begun_;
    kLog.Debug("stopping", {{"part", parts_[begun_]->name()}});
    if (auto early = given_up_.find(parts_[begun_].get()); early != given_up_.end()) {
      if (early->second) return StopNext();
      awaited_ = early->first;
      return;
    }
    parts_[begun_]->Stop([this] { StopNext(); });
  }

  UvLoop& loop_;
  std::vector<std::unique_ptr<Part>> parts_;
  cli::Console& console_;
  std::function<void()> on_ready_;
  std::size_t begun_ = 0;                 // parts started so far, which need to be stopped
  std::map<const Part*, bool> given_up_;  // parts stopped early, and whether they have finished
  const Part* awaited_ = nullptr;         // the one that the final shutdown waits for
  bool stopping_ = false;
  int exit_code_ = cli::kExitOk;
};

}  // namespace

int RunParts(UvLoop& main_loop, std::vector<std::unique_ptr<Part>> parts, cli::Console& console,
             std::function<void()> on_ready) {
  return Runner(main_loop, std::move(parts), console, std::move(on_ready)).Run();
}

std::string HostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0) return "node";
  return ToLower(name);
}

std::vector<cli::Flag> CommonFlags() {
  return {
      {.name = "feature-gates",
       .help = "Feature gates, as NAME=true,NAME=false.",
       .placeholder = "GATES"},
      {.name = "emulated-version",
       .help = "Emulate this Kubernetes release, for example 1.36.",
       .default_value = kOurVersion.ToString(),
       .placeholder = "VERSION"},
      {.name = "logging-format",
       .help = "Log format: text or json.",
       .default_value = "text",
       .placeholder = "FORMAT"},
      {.name = "log-level",
       .help = "Minimum log level: debug, info, warning or error.",
       .default_value = "info",
       .placeholder = "LEVEL"},
      {.name = "parent-pid",
       .type = cli::FlagType::kInt,
       .help = "Exit when this process, which must be the parent, exits.",
       .default_value = "0",
       .placeholder = "PID",
       .hidden = true},
  };
}

Result<FeatureGates> ReadCommonFlags(const cli::Arguments& arguments, std::vector<Gate> turned_on,
                                     const std::string& file_gates) {
  if (const std::int64_t parent = arguments.Int("parent-pid"); parent != 0) {
    // Also if the parent is killed, which must not leave a second instance behind.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) return Unavailable("the process in --parent-pid has ended");
  }
  LogFormat format = LogFormat::kText;
  if (arguments.Text("logging-format") == "json") {
    format = LogFormat::kJson;
  } else if (arguments.Text("logging-format") != "text") {
    return InvalidArgument(StrCat("--logging-format must be text or json, not ",
                                  Quote(arguments.Text("logging-format"))));
  }
  LogLevel level = LogLevel::kInfo;
  const std::string& wanted = arguments.Text("log-level");
  if (wanted == "debug") {
    level = LogLevel::kDebug;
  } else if (wanted == "warning") {
    level = LogLevel::kWarning;
  } else if (wanted == "error") {
    level = LogLevel::kError;
  } else if (wanted != "info") {
    return InvalidArgument(
        StrCat("--log-level must be debug, info, warning or error, not ", Quote(wanted)));
  }
  ConfigureLogging(format, level, RealClock());
  const std::optional<ReleaseVersion> version =
      ParseReleaseVersion(arguments.Text("emulated-version"));
  if (!version) {
    return InvalidArgument(StrCat("--emulated-version must be a release such as 1.36, not ",
                                  Quote(arguments.Text("emulated-version"))));
  }
  Result<FeatureGates> gates = FeatureGates::Create({.emulated = *version,
                                                     .overrides = arguments.Text("feature-gates"),
                                                     .file_overrides = std::string(file_gates),
                                                     .turned_on = std::move(turned_on)});
  if (!gates.ok()) return gates;
  // Nobody should rely on gates that nothing implements.
  const Result<FeatureGates> defaults = FeatureGates::Create({.emulated = *version});
  if (defaults.ok() && defaults->Enabled(Gate::kDynamicResourceAllocation) &&
      !gates->Enabled(Gate::kDynamicResourceAllocation)) {
    return InvalidArgument(
        "feature gate DynamicResourceAllocation cannot be turned off: Drakkar is the "
        "implementation of dynamic resource allocation");
  }
  if (gates->Enabled(Gate::kDRANodeAllocatableResources)) {
    return InvalidArgument(StrCat("feature gate ", GateName(Gate::kDRANodeAllocatableResources),
                                  " is not implemented; leave it out of --feature-gates"));
  }
  return gates;
}

}  // namespace drakkar::cmd
