#include "node/runtime/oci/record.h"

#include "api/json/json_writer.h"
#include "base/text/text.h"
#include "node/runtime/json.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr int kRecordVersion = 1;
constexpr std::string_view kPhaseNames[] = {"creating", "created", "starting",
                                            "running",  "exited",  "removing"};

std::int64_t Nanoseconds(WallTime time) {
  return time.time_since_epoch().count();
}
WallTime TimeOf(Value nanoseconds) {
  return WallTime(std::chrono::nanoseconds(nanoseconds.integer()));
}

Result<Phase> PhaseOf(Value json) {
  const std::string_view name = json["phase"].str();
  for (std::size_t i = 0; i < std::size(kPhaseNames); ++i) {
    if (kPhaseNames[i] == name) return static_cast<Phase>(i);
  }
  return Error{ErrorCode::kDataLoss, StrCat("unknown phase ", Quote(name))};
}

Result<api::TreePtr> ParseVersioned(std::string_view text) {
  ASSIGN_OR_RETURN(api::TreePtr tree, ParseJson(text));
  if (tree->root()["version"].integer() != kRecordVersion) {
    return Error{ErrorCode::kDataLoss, "unknown record version"};
  }
  if (tree->root()["id"].str().empty()) {
    return Error{ErrorCode::kDataLoss, "record without an id"};
  }
  return tree;
}

template <typename Record>
void WriteHead(api::JsonWriter& json, const Record& record) {
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
Result<void> ReadHead(Value json, Record& record) {
  record.id = json["id"].str();
  ASSIGN_OR_RETURN(record.phase, PhaseOf(json));
  record.name = json["name"].str();
  record.attempt = static_cast<std::uint32_t>(json["attempt"].integer());
  record.created_at = TimeOf(json["createdAt"]);
  record.labels = StringMap(json["labels"]);
  record.annotations = StringMap(json["annotations"]);
  return Ok();
}

}  // namespace

std::string WriteRecord(const SandboxRecord& record) {
  api::JsonWriter json;
  json.BeginObject();
  WriteHead(json, record);
  json.Member("namespace", record.namespace_name);
  json.Member("uid", record.uid);
  json.Member("hostname", record.hostname);
  json.Member("logDirectory", record.log_directory);
  json.Member("cgroupParent", record.cgroup_parent);
  json.Key("hostPid").Bool(record.host_pid);
  json.Key("hostIpc").Bool(record.host_ipc);
  json.Key("sharesProcesses").Bool(record.shares_processes);
  json.Member("networkNamespace", record.network_namespace);
  json.Array("ips", record.ips);
  json.StringMap("sysctls", record.sysctls);
  json.Member("handler", record.runtime_handler);
  json.Member("program", record.runtime_program);
  json.Key("resources").BeginObject();
  json.Key("shares").Integer(record.cpu_shares);
  json.Key("quota").Integer(record.cpu_quota_us);
  json.Key("period").Integer(record.cpu_period_us);
  json.Key("memory").Integer(record.memory_limit_bytes);
  json.EndObject();
  json.EndObject();
  return json.Take();
}

std::string WriteRecord(const ContainerRecord& record) {
  api::JsonWriter json;
  json.BeginObject();
  WriteHead(json, record);
  json.Member("sandbox", record.sandbox_id);
  json.Member("image", record.image);
  json.Member("imageId", record.image_id);
  json.Member("imageReference", record.image_reference);
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
  if (record.user) {
    json.Key("user").BeginObject();
    json.Key("uid").Integer(record.user->uid).Key("gid").Integer(record.user->gid);
    json.Key("groups").BeginArray();
    for (const std::int64_t gid : record.user->supplemental_groups) json.Integer(gid);
    json.EndArray().EndObject();
  }
  json.EndObject();
  return json.Take();
}

Result<SandboxRecord> ParseSandboxRecord(std::string_view text) {
  ASSIGN_OR_RETURN(const api::TreePtr tree, ParseVersioned(text));
  const Value json = tree->root();
  SandboxRecord record;
  RETURN_IF_ERROR(ReadHead(json, record));
  record.namespace_name = json["namespace"].str();
  record.uid = json["uid"].str();
  record.hostname = json["hostname"].str();
  record.log_directory = json["logDirectory"].str();
  record.cgroup_parent = json["cgroupParent"].str();
  record.host_pid = json["hostPid"].boolean();
  record.host_ipc = json["hostIpc"].boolean();
  record.shares_processes = json.Entry("sharesProcesses").boolean();
  record.network_namespace = json["networkNamespace"].str();
  record.ips = Strings(json["ips"]);
  record.sysctls = StringMap(json["sysctls"]);
  record.runtime_handler = json["handler"].str();
  record.runtime_program = json.Entry("program").str();
  const Value resources = json["resources"];
  record.cpu_shares = resources["shares"].integer();
  record.cpu_quota_us = resources["quota"].integer();
  record.cpu_period_us = resources.Entry("period").integer();
  record.memory_limit_bytes = resources["memory"].integer();
  return record;
}

Result<ContainerRecord> ParseContainerRecord(std::string_view text) {
  ASSIGN_OR_RETURN(const api::TreePtr tree, ParseVersioned(text));
  const Value json = tree->root();
  ContainerRecord record;
  RETURN_IF_ERROR(ReadHead(json, record));
  record.sandbox_id = json["sandbox"].str();
  record.image = json["image"].str();
  record.image_id = json["imageId"].str();
  record.image_reference = json.Entry("imageReference").str();
  record.log_path = json["logPath"].str();
  record.cgroup_path = json["cgroupPath"].str();
  record.terminal = json["terminal"].boolean();
  record.standard_input = json["stdin"].boolean();
  record.standard_input_once = json["stdinOnce"].boolean();
  record.has_poststop_hooks = json["poststopHooks"].boolean();
  record.released = json["released"].boolean();
  record.stop_signal = static_cast<int>(json["stopSignal"].integer(15));
  record.pid = static_cast<int>(json["pid"].integer());
  record.pid_start_ticks = static_cast<std::uint64_t>(json["pidStart"].integer());
  record.started_at = TimeOf(json["startedAt"]);
  record.finished_at = TimeOf(json["finishedAt"]);
  record.exit_code = static_cast<int>(json["exitCode"].integer());
  record.reason = json["reason"].str();
  record.message = json["message"].str();
  if (const Value user = json["user"]; user.is_object()) {
    record.user = {user["uid"].integer(), user["gid"].integer(), {}};
    for (const Value gid : user["groups"].elements()) {
      record.user->supplemental_groups.push_back(gid.integer());
    }
  }
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
  // Records of older versions have no reference.
  status.image_id = record.image_reference.empty() ? record.image_id : record.image_reference;
  status.user = record.user;
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
  sandbox.network_namespace = record.network_namespace;
  sandbox.ips = record.ips;
  sandbox.labels = record.labels;
  sandbox.annotations = record.annotations;
  sandbox.cgroup_parent = record.cgroup_parent;
  sandbox.resources.cpu_shares = record.cpu_shares;
  sandbox.resources.cpu_quota_us = record.cpu_quota_us;
  sandbox.resources.cpu_period_us = record.cpu_period_us;
  sandbox.resources.memory_limit_bytes = record.memory_limit_bytes;
  sandbox.runtime_handler = record.runtime_handler;
  return sandbox;
}

}  // namespace drakkar::node
