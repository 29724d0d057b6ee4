#include "cmd/drakkar/agent_settings.h"

#include <algorithm>

#include "api/meta/quantity.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::cmd {
namespace {

using api::Value;

constexpr std::int64_t kMostLogBytes = std::int64_t{1} << 40;
constexpr std::int64_t kMostLogFiles = 10'000;
constexpr Duration kLeastLogInterval = std::chrono::seconds(3);
constexpr Duration kLongestCrashBackoff = std::chrono::minutes(5);

Error Wrong(std::string_view field, std::string_view why) {
  return InvalidArgument(StrCat(field, ": ", why));
}

// Sets nothing if the field is missing.
Result<void> ReadDuration(Value root, std::string_view field, Duration least, Duration& out) {
  const std::string_view text = root.Entry(field).str();
  if (text.empty()) return Ok();
  ASSIGN_OR_RETURN(const Duration value, api::ParseDuration(text));
  if (value == Duration::zero()) return Ok();  // a kubelet's default, too
  if (value < least) {
    return Wrong(field,
                 StrCat("must be at least ",
                        std::chrono::duration_cast<std::chrono::seconds>(least).count(), "s"));
  }
  out = value;
  return Ok();
}

Result<void> ReadRegistration(Value root, node::NodeRegistration& registration) {
  constexpr Duration kLeast = std::chrono::seconds(1);
  const Duration heartbeat = registration.heartbeat_every;
  RETURN_IF_ERROR(
      ReadDuration(root, "nodeStatusUpdateFrequency", kLeast, registration.status_every));
  // As in a kubelet: who looks at a rate of his own also reports at it.
  registration.heartbeat_every =
      root["nodeStatusUpdateFrequency"].str().empty() ? heartbeat : registration.status_every;
  RETURN_IF_ERROR(
      ReadDuration(root, "nodeStatusReportFrequency", kLeast, registration.heartbeat_every));
  if (const std::int64_t seconds = root["nodeLeaseDurationSeconds"].integer(); seconds != 0) {
    if (seconds < 0) return Wrong("nodeLeaseDurationSeconds", "must be greater than zero");
    registration.lease_seconds = seconds;
  }
  if (const auto most = root.Entry("nodeStatusMaxImages").optional_integer()) {
    if (*most < -1) return Wrong("nodeStatusMaxImages", "must be -1 or more");
    registration.max_images = *most;
  }
  registration.provider_id = root["providerID"].str();
  registration.creates_node = root.Entry("registerNode").boolean(true);
  for (const Value taint : root["registerWithTaints"].elements()) {
    node::NodeTaint made{std::string(taint["key"].str()), std::string(taint["value"].str()),
                         std::string(taint["effect"].str())};
    if (made.key.empty() || (made.effect != "NoSchedule" && made.effect != "PreferNoSchedule" &&
                             made.effect != "NoExecute")) {
      return Wrong("registerWithTaints",
                   "each needs a key and the effect NoSchedule, PreferNoSchedule or NoExecute");
    }
    registration.taints.push_back(std::move(made));
  }
  return Ok();
}

Result<void> ReadLogs(Value root, node::LogLimits& logs) {
  if (const std::string_view text = root["containerLogMaxSize"].str(); !text.empty()) {
    const auto size = api::Quantity::Parse(text);
    if (!size.ok()) return size.error().Prefixed("containerLogMaxSize");
    if (size->Value() <= 0 || size->Value() > kMostLogBytes) {
      return Wrong("containerLogMaxSize", "must be greater than zero, and at most 1Ti");
    }
    logs.max_bytes = static_cast<std::uint64_t>(size->Value());
  }
  if (const auto count = root["containerLogMaxFiles"].optional_integer()) {
    if (*count < 2 || *count > kMostLogFiles) {
      return Wrong("containerLogMaxFiles", StrCat("must be between 2 and ", kMostLogFiles));
    }
    logs.max_files = static_cast<std::size_t>(*count);
  }
  return ReadDuration(root, "containerLogMonitorInterval", kLeastLogInterval, logs.check_every);
}

Result<void> ReadPulls(Value root, node::PullLimits& pulls) {
  const auto serialize = root["serializeImagePulls"].optional_boolean();
  if (serialize == true) pulls.max_parallel = 1;
  if (const auto parallel = root["maxParallelImagePulls"].optional_integer()) {
    if (*parallel < 1) return Wrong("maxParallelImagePulls", "must be greater than zero");
    if (*parallel > 1 && serialize != false) {
      return Wrong("maxParallelImagePulls", "more than 1 needs serializeImagePulls: false");
    }
    pulls.max_parallel = static_cast<std::size_t>(*parallel);
  }
  const auto per_second = root.Entry("registryPullQPS").optional_integer();
  const std::int64_t burst = root.Entry("registryBurst").integer(10);
  if (per_second.value_or(0) < 0) return Wrong("registryPullQPS", "must not be negative");
  if (burst < 0) return Wrong("registryBurst", "must not be negative");
  if (per_second) {
    pulls.per_second = static_cast<double>(*per_second);
    pulls.burst = static_cast<double>(std::max<std::int64_t>(burst, 1));
  }
  return Ok();
}

}  // namespace

Result<AgentSettings> ReadAgentSettings(Value root) {
  AgentSettings settings;
  RETURN_IF_ERROR(ReadRegistration(root, settings.registration));
  RETURN_IF_ERROR(ReadLogs(root, settings.logs));
  RETURN_IF_ERROR(ReadPulls(root, settings.pulls));
  const Value backoff = root["crashLoopBackOff"];
  RETURN_IF_ERROR(ReadDuration(backoff, "maxContainerRestartPeriod", std::chrono::seconds(1),
                               settings.longest_crash_backoff));
  if (settings.longest_crash_backoff > kLongestCrashBackoff) {
    return Wrong("maxContainerRestartPeriod", "must be between 1s and 300s");
  }
  settings.pod_logs_directory = root.Entry("podLogsDir").str();
  if (!settings.pod_logs_directory.empty() && !settings.pod_logs_directory.starts_with('/')) {
    return Wrong("podLogsDir", "must be an absolute path");
  }
  settings.pods_per_core = root["podsPerCore"].integer();
  if (settings.pods_per_core < 0) return Wrong("podsPerCore", "must not be negative");
  settings.fail_swap_on = root["failSwapOn"].boolean();
  return settings;
}

std::int64_t MaxPods(const AgentSettings& settings, std::int64_t max_pods,
                     const node::NodeFacts& facts) {
  const std::int64_t most = max_pods > 0 ? max_pods : facts.max_pods;
  if (settings.pods_per_core == 0) return most;
  return std::min(most, settings.pods_per_core * facts.cpu_count);
}

}  // namespace drakkar::cmd
