#include "node/runtime/oci/record.h"

#include "base/text/text.h"
#include "node/runtime/json.h"

namespace drakkar::node {
namespace {

constexpr int kRecordVersion = 1;
constexpr std::string_view kPhaseNames[] = {"creating", "created", "starting",
                                            "running",  "exited",  "removing"};

std::int64_t Nanoseconds(WallTime time) {
  return time.time_since_epoch().count();
}
WallTime TimeOf(const JsonValue& json, std::string_view key) {
  return WallTime(std::chrono::nanoseconds(json.Integer(key).value_or(0)));
}

std::map<std::string, std::string> MapOf(const JsonValue& json, std::string_view key) {
  const auto pairs = json.StringMap(key);
  return {pairs.begin(), pairs.end()};
}

Result<Phase> PhaseOf(const JsonValue& json) {
  const std::string name = json.String("phase");
  for (std::size_t i = 0; i < std::size(kPhaseNames); ++i) {
    if (kPhaseNames[i] == name) return static_cast<Phase>(i);
  }
  return Error{ErrorCode::kDataLoss, "unknown phase " + Quote(name)};
}

Result<JsonValue> ParseVersioned(std::string_view text) {
  ASSIGN_OR_RETURN(JsonValue json, ParseJson(text));
  if (json.Integer("version") != kRecordVersion) {
    return Error{ErrorCode::kDataLoss, "not a record of a version this program knows"};
  }
  if (json.String("id").empty()) return Error{ErrorCode::kDataLoss, "record without an id"};
  return json;
}

template <typename Record>
void WriteHead(JsonWriter& json, const Record& record) {
  json.Key("version").Integer(kRecordVersion);
  json.Member("id", record.id);
  json.Member("phase", kPhaseNames[static_cast<std::size_t>(record.phase)]);
  json.Member("name", record.name);
  json.Key("attempt").Integer(record.attempt);
  json.Key("createdAt").Integer(Nanoseconds(record.created_at));
  json.StringMap("labels", record.labels);
  json.StringMap("annotations", record.annotations);
}

template <typename Record>
Result<void> ReadHead(const JsonValue& json, Record& record) {
  record.id = json.String("id");
  ASSIGN_OR_RETURN(record.phase, PhaseOf(json));
  record.name = json.String("name");
  record.attempt = static_cast<std::uint32_t>(json.Integer("attempt").value_or(0));
  record.created_at = TimeOf(json, "createdAt");
  record.labels = MapOf(json, "labels");
  record.annotations = MapOf(json, "annotations");
  return Ok();
}

}  // namespace

std::string WriteRecord(const SandboxRecord& record) {
  JsonWriter json;
  json.BeginObject();
  WriteHead(json, record);
  json.Member("namespace", record.namespace_name);
  json.Member("uid", record.uid);
  json.Member("hostname", record.hostname);
  json.Member("logDirectory", record.log_directory);
  json.Member("cgroupParent", record.cgroup_parent);
  json.Key("hostPid").Bool(record.host_pid);
  json.Key("hostIpc").Bool(record.host_ipc);
  json.StringMap("sysctls", record.sysctls);
  json.EndObject();
  return json.Take();
}

std::string WriteRecord(const ContainerRecord& record) {
  JsonWriter json;
  json.BeginObject();
  WriteHead(json, record);
  json.Member("sandbox", record.sandbox_id);
  json.Member("image", record.image);
  json.Member("imageId", record.image_id);
  json.Member("logPath", record.log_path);
  json.Member("cgroupPath", record.cgroup_path);
  json.Key("terminal").Bool(record.terminal);
  json.Key("stdin").Bool(record.standard_input);
  json.Key("stdinOnce").Bool(record.standard_input_once);
  json.Key("poststopHooks").Bool(record.has_poststop_hooks);
  json.Key("released").Bool(record.released);
  json.Key("stopSignal").Integer(record.stop_signal);
  json.Key("pid").Integer(record.pid);
  json.Key("pidStart").Integer(static_cast<std::int64_t>(record.pid_start_ticks));
  json.Key("startedAt").Integer(Nanoseconds(record.started_at));
  json.Key("finishedAt").Integer(Nanoseconds(record.finished_at));
  json.Key("exitCode").Integer(record.exit_code);
  json.Member("reason", record.reason);
  json.Member("message", record.message);
  json.EndObject();
  return json.Take();
}

Result<SandboxRecord> ParseSandboxRecord(std::string_view text) {
  ASSIGN_OR_RETURN(const JsonValue json, ParseVersioned(text));
  SandboxRecord record;
  RETURN_IF_ERROR(ReadHead(json, record));
  record.namespace_name = json.String("namespace");
  record.uid = json.String("uid");
  record.hostname = json.String("hostname");
  record.log_directory = json.String("logDirectory");
  record.cgroup_parent = json.String("cgroupParent");
  record.host_pid = json.Bool("hostPid");
  record.host_ipc = json.Bool("hostIpc");
  record.sysctls = MapOf(json, "sysctls");
  return record;
}

Result<ContainerRecord> ParseContainerRecord(std::string_view text) {
  ASSIGN_OR_RETURN(const JsonValue json, ParseVersioned(text));
  ContainerRecord record;
  RETURN_IF_ERROR(ReadHead(json, record));
  record.sandbox_id = json.String("sandbox");
  record.image = json.String("image");
  record.image_id = json.String("imageId");
  record.log_path = json.String("logPath");
  record.cgroup_path = json.String("cgroupPath");
  record.terminal = json.Bool("terminal");
  record.standard_input = json.Bool("stdin");
  record.standard_input_once = json.Bool("stdinOnce");
  record.has_poststop_hooks = json.Bool("poststopHooks");
  record.released = json.Bool("released");
  record.stop_signal = static_cast<int>(json.Integer("stopSignal").value_or(15));
  record.pid = static_cast<int>(json.Integer("pid").value_or(0));
  record.pid_start_ticks = static_cast<std::uint64_t>(json.Integer("pidStart").value_or(0));
  record.started_at = TimeOf(json, "startedAt");
  record.finished_at = TimeOf(json, "finishedAt");
  record.exit_code = static_cast<int>(json.Integer("exitCode").value_or(0));
  record.reason = json.String("reason");
  record.message = json.String("message");
  return record;
}

ContainerStatus StatusOf(const ContainerRecord& record) {
  ContainerStatus status;
  status.id = record.id;
  status.sandbox_id = record.sandbox_id;
  status.name = record.name;
  status.attempt = record.attempt;
  switch (record.phase) {
    case Phase::kCreating:
    case Phase::kCreated:
    case Phase::kStarting:
      status.state = ContainerState::kCreated;
      break;
    case Phase::kRunning:
      status.state = ContainerState::kRunning;
      break;
    case Phase::kExited:
      status.state = ContainerState::kExited;
      break;
    case Phase::kRemoving:
      status.state = ContainerState::kUnknown;
      break;
  }
  status.pid = record.phase == Phase::kRunning ? record.pid : 0;
  status.created_at = record.created_at;
  status.started_at = record.started_at;
  status.finished_at = record.finished_at;
  status.exit_code = record.exit_code;
  status.reason = record.reason;
  status.message = record.message;
  status.image = record.image;
  status.image_id = record.image_id;
  status.log_path = record.log_path;
  status.labels = record.labels;
  status.annotations = record.annotations;
  return status;
}

PodSandbox SandboxOf(const SandboxRecord& record) {
  PodSandbox sandbox;
  sandbox.id = record.id;
  sandbox.name = record.name;
  sandbox.namespace_name = record.namespace_name;
  sandbox.uid = record.uid;
  sandbox.attempt = record.attempt;
  sandbox.state = record.phase == Phase::kRunning ? SandboxState::kReady : SandboxState::kNotReady;
  sandbox.created_at = record.created_at;
  sandbox.labels = record.labels;
  sandbox.annotations = record.annotations;
  return sandbox;
}

}  // namespace drakkar::node
