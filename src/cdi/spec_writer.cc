#include "cdi/spec_writer.h"

#include <functional>
#include <string_view>
#include <utility>

#include "api/json/json_writer.h"

namespace drakkar::cdi {
namespace {

using api::JsonWriter;

// Empty fields are omitted.
void Text(JsonWriter& json, std::string_view key, std::string_view value) {
  if (!value.empty()) json.Member(key, value);
}
void Integer(JsonWriter& json, std::string_view key, std::int64_t value) {
  if (value != 0) json.Key(key).Integer(value);
}
template <typename T>
void Integer(JsonWriter& json, std::string_view key, const std::optional<T>& value) {
  if (value.has_value()) json.Key(key).Integer(*value);
}
void Flag(JsonWriter& json, std::string_view key, bool value) {
  if (value) json.Key(key).Bool(true);
}
void Texts(JsonWriter& json, std::string_view key, const std::vector<std::string>& values) {
  if (!values.empty()) json.Array(key, values);
}
void TextMap(JsonWriter& json, std::string_view key,
             const std::map<std::string, std::string>& values) {
  if (!values.empty()) json.StringMap(key, values);
}
template <typename Items, typename WriteItem>
void Array(JsonWriter& json, std::string_view key, const Items& items, WriteItem write) {
  if (items.empty()) return;
  json.Key(key).BeginArray();
  for (const auto& item : items) write(item);
  json.EndArray();
}

void WriteDeviceNode(const DeviceNode& node, JsonWriter& json) {
  json.BeginObject();
  json.Member("path", node.path);
  Text(json, "hostPath", node.host_path);
  Text(json, "type", node.type);
  Integer(json, "major", node.major);
  Integer(json, "minor", node.minor);
  Integer(json, "fileMode", node.file_mode);
  Text(json, "permissions", node.permissions);
  Integer(json, "uid", node.uid);
  Integer(json, "gid", node.gid);
  json.EndObject();
}

void WriteNetDevice(const NetDevice& device, JsonWriter& json) {
  json.BeginObject();
  json.Member("hostInterfaceName", device.host_interface_name);
  json.Member("name", device.name);
  json.EndObject();
}

void WriteHook(const Hook& hook, JsonWriter& json) {
  json.BeginObject();
  json.Member("hookName", hook.hook_name);
  json.Member("path", hook.path);
  Texts(json, "args", hook.args);
  Texts(json, "env", hook.env);
  Integer(json, "timeout", hook.timeout_seconds);
  json.EndObject();
}

void WriteMount(const Mount& mount, JsonWriter& json) {
  json.BeginObject();
  json.Member("hostPath", mount.host_path);
  json.Member("containerPath", mount.container_path);
  Texts(json, "options", mount.options);
  Text(json, "type", mount.type);
  json.EndObject();
}

void WriteIntelRdt(const IntelRdt& rdt, JsonWriter& json) {
  json.BeginObject();
  Text(json, "closID", rdt.clos_id);
  Text(json, "l3CacheSchema", rdt.l3_cache_schema);
  Text(json, "memBwSchema", rdt.mem_bw_schema);
  Texts(json, "schemata", rdt.schemata);
  Flag(json, "enableMonitoring", rdt.enable_monitoring);
  Flag(json, "enableCMT", rdt.enable_cmt);
  Flag(json, "enableMBM", rdt.enable_mbm);
  json.EndObject();
}

void WriteEdits(const ContainerEdits& edits, JsonWriter& json) {
  json.BeginObject();
  Texts(json, "env", edits.env);
  Array(json, "deviceNodes", edits.device_nodes,
        [&](const DeviceNode& node) { WriteDeviceNode(node, json); });
  Array(json, "netDevices", edits.net_devices,
        [&](const NetDevice& device) { WriteNetDevice(device, json); });
  Array(json, "hooks", edits.hooks, [&](const Hook& hook) { WriteHook(hook, json); });
  Array(json, "mounts", edits.mounts, [&](const Mount& mount) { WriteMount(mount, json); });
  if (edits.intel_rdt.has_value()) {
    json.Key("intelRdt");
    WriteIntelRdt(*edits.intel_rdt, json);
  }
  Array(json, "additionalGids", edits.additional_gids,
        [&](std::uint32_t gid) { json.Unsigned(gid); });
  json.EndObject();
}

}  // namespace

std::string WriteSpecJson(const Spec& spec) {
  JsonWriter json({.indent = 2, .final_newline = true});
  json.BeginObject();
  json.Member("cdiVersion", spec.cdi_version);
  json.Member("kind", spec.kind);
  TextMap(json, "annotations", spec.annotations);
  Array(json, "devices", spec.devices, [&](const Device& device) {
    json.BeginObject();
    json.Member("name", device.name);
    TextMap(json, "annotations", device.annotations);
    json.Key("containerEdits");
    WriteEdits(device.container_edits, json);
    json.EndObject();
  });
  // Written even if empty, as Go writes an empty struct.
  json.Key("containerEdits");
  WriteEdits(spec.container_edits, json);
  json.EndObject();
  return json.Take();
}

}  // namespace drakkar::cdi
