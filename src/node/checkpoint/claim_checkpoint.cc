#include "node/checkpoint/claim_checkpoint.h"

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "base/hash/crc32.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

using api::Value;
using api::ValueKind;

void AppendMember(std::string& out, std::string_view name) {
  api::AppendJsonString(out, name);
  out += ':';
}

void AppendStrings(std::string& out, const std::optional<std::vector<std::string>>& list) {
  if (!list) {
    out += "null";
    return;
  }
  out += '[';
  for (std::size_t i = 0; i < list->size(); ++i) {
    if (i > 0) out += ',';
    api::AppendJsonString(out, (*list)[i]);
  }
  out += ']';
}

void AppendDevice(std::string& out, const CheckpointDevice& device) {
  out += "{\"PoolName\":";
  api::AppendJsonString(out, device.pool_name);
  out += ",\"DeviceName\":";
  api::AppendJsonString(out, device.device_name);
  out += ",\"ShareID\":";
  if (device.share_id) {
    api::AppendJsonString(out, *device.share_id);
  } else {
    out += "null";
  }
  out += ",\"RequestNames\":";
  AppendStrings(out, device.request_names);
  out += ",\"CDIDeviceIDs\":";
  AppendStrings(out, device.cdi_device_ids);
  out += '}';
}

void AppendDriver(std::string& out, const CheckpointDriver& driver) {
  out += "{\"Devices\":";
  if (!driver.devices) {
    out += "null";
  } else {
    out += '[';
    for (std::size_t i = 0; i < driver.devices->size(); ++i) {
      if (i > 0) out += ',';
      AppendDevice(out, (*driver.devices)[i]);
    }
    out += ']';
  }
  if (!driver.skip_node_operations.empty()) {
    out += ",\"skipNodeOperations\":";
    AppendStrings(out, driver.skip_node_operations);
  }
  out += '}';
}

void AppendClaim(std::string& out, const CheckpointClaim& claim) {
  out += "{\"ClaimUID\":";
  api::AppendJsonString(out, claim.uid);
  out += ",\"ClaimName\":";
  api::AppendJsonString(out, claim.name);
  out += ",\"Namespace\":";
  api::AppendJsonString(out, claim.namespace_name);
  out += ",\"PodUIDs\":";
  if (!claim.pod_uids) {
    out += "null";
  } else {
    out += '{';
    bool first = true;
    for (const std::string& uid : *claim.pod_uids) {
      if (!first) out += ',';
      first = false;
      AppendMember(out, uid);
      out += "{}";
    }
    out += '}';
  }
  out += ",\"DriverState\":";
  if (!claim.driver_state) {
    out += "null";
  } else {
    out += '{';
    bool first = true;
    for (const auto& [name, driver] : *claim.driver_state) {
      if (!first) out += ',';
      first = false;
      AppendMember(out, name);
      AppendDriver(out, driver);
    }
    out += '}';
  }
  out += '}';
}

// Go's decoder prefers an exact match and otherwise ignores case; the last member wins.
Value Find(Value object, std::string_view name) {
  Value found;
  const std::string lower = ToLower(name);
  for (const api::MemberView member : object.members()) {
    if (member.name == name || ToLower(member.name) == lower) found = member.value;
  }
  return found;
}

std::string_view KindText(ValueKind kind) {
  switch (kind) {
    case ValueKind::kBool:
      return "bool";
    case ValueKind::kInt:
    case ValueKind::kDouble:
      return "number";
    case ValueKind::kString:
      return "string";
    case ValueKind::kArray:
      return "array";
    case ValueKind::kObject:
      return "object";
    default:
      return "null";
  }
}

Error WrongKind(Value value, std::string_view where, std::string_view type) {
  return {ErrorCode::kDataLoss, StrCat("json: cannot unmarshal ", KindText(value.kind()),
                                       " into Go ", where, " of type ", type)};
}

constexpr char kList[] = "ClaimInfoStateList";

// A member that may be absent or null and otherwise must have this type.
Result<Value> Member(Value object, std::string_view name, ValueKind kind, std::string_view where,
                     std::string_view type) {
  const Value value = Find(object, name);
  if (value.has_value() && value.kind() != kind) return WrongKind(value, where, type);
  return value;
}

Result<std::string> ReadString(Value object, std::string_view name, std::string_view where) {
  ASSIGN_OR_RETURN(const Value value, Member(object, name, ValueKind::kString,
                                             StrCat("struct field ", where, name), "string"));
  return std::string(value.str());
}

Result<std::optional<std::vector<std::string>>> ReadStrings(Value object, std::string_view name,
                                                            std::string_view where) {
  ASSIGN_OR_RETURN(const Value value, Member(object, name, ValueKind::kArray,
                                             StrCat("struct field ", where, name), "[]string"));
  if (!value.has_value()) return std::optional<std::vector<std::string>>();
  std::vector<std::string> list;
  for (Value item : value.elements()) {
    if (item.has_value() && !item.is_string()) {
      return WrongKind(item, StrCat("struct field ", where, name), "string");
    }
    list.emplace_back(item.str());
  }
  return std::optional<std::vector<std::string>>(std::move(list));
}

Result<CheckpointDevice> ReadDevice(Value value) {
  const std::string where = StrCat("Device.", kList, ".DriverState.Devices.");
  if (value.has_value() && !value.is_object()) {
    return WrongKind(value, StrCat("struct field ", where), "state.Device");
  }
  CheckpointDevice device;
  ASSIGN_OR_RETURN(device.pool_name, ReadString(value, "PoolName", where));
  ASSIGN_OR_RETURN(device.device_name, ReadString(value, "DeviceName", where));
  ASSIGN_OR_RETURN(const Value share,
                   Member(value, "ShareID", ValueKind::kString,
                          StrCat("struct field ", where, "ShareID"), "types.UID"));
  if (share.has_value()) device.share_id = std::string(share.str());
  ASSIGN_OR_RETURN(device.request_names, ReadStrings(value, "RequestNames", where));
  ASSIGN_OR_RETURN(device.cdi_device_ids, ReadStrings(value, "CDIDeviceIDs", where));
  return device;
}

Result<CheckpointDriver> ReadDriver(Value value) {
  const std::string where = StrCat("DriverState.", kList, ".DriverState.");
  if (value.has_value() && !value.is_object()) {
    return WrongKind(value, StrCat("struct field ", where), "state.DriverState");
  }
  CheckpointDriver driver;
  ASSIGN_OR_RETURN(const Value devices,
                   Member(value, "Devices", ValueKind::kArray,
                          StrCat("struct field ", where, "Devices"), "[]state.Device"));
  if (devices.has_value()) {
    driver.devices.emplace();
    for (Value each : devices.elements()) {
      ASSIGN_OR_RETURN(CheckpointDevice device, ReadDevice(each));
      driver.devices->push_back(std::move(device));
    }
  }
  ASSIGN_OR_RETURN(auto skips, ReadStrings(value, "skipNodeOperations", where));
  if (skips) driver.skip_node_operations = std::move(*skips);
  return driver;
}

Result<CheckpointClaim> ReadClaim(Value value) {
  const std::string where = StrCat("ClaimInfoState.", kList, ".");
  if (value.has_value() && !value.is_object()) {
    return WrongKind(value, StrCat("struct field CheckpointData.", kList), "state.ClaimInfoState");
  }
  CheckpointClaim claim;
  ASSIGN_OR_RETURN(claim.uid, ReadString(value, "ClaimUID", where));
  ASSIGN_OR_RETURN(claim.name, ReadString(value, "ClaimName", where));
  ASSIGN_OR_RETURN(claim.namespace_name, ReadString(value, "Namespace", where));
  ASSIGN_OR_RETURN(const Value pods,
                   Member(value, "PodUIDs", ValueKind::kObject,
                          StrCat("struct field ", where, "PodUIDs"), "sets.Set[string]"));
  if (pods.has_value()) {
    claim.pod_uids.emplace();
    for (const api::MemberView pod : pods.members()) claim.pod_uids->insert(std::string(pod.name));
  }
  ASSIGN_OR_RETURN(const Value drivers, Member(value, "DriverState", ValueKind::kObject,
                                               StrCat("struct field ", where, "DriverState"),
                                               "map[string]state.DriverState"));
  if (drivers.has_value()) {
    claim.driver_state.emplace();
    for (const api::MemberView each : drivers.members()) {
      ASSIGN_OR_RETURN(CheckpointDriver driver, ReadDriver(each.value));
      (*claim.driver_state)[std::string(each.name)] = std::move(driver);
    }
  }
  return claim;
}

Result<api::TreePtr> Parse(std::string_view text) {
  auto tree = api::ParseJson(
      text, {.max_depth = 32, .max_size_bytes = kMaxCheckpointBytes, .refuse_duplicates = false});
  if (!tree.ok()) return Error{ErrorCode::kDataLoss, tree.error().message};
  return tree;
}

Result<CheckpointState> ReadData(std::string_view data) {
  ASSIGN_OR_RETURN(const api::TreePtr tree, Parse(data));
  const Value root = tree->root();
  if (!root.has_value()) return CheckpointState();
  if (!root.is_object()) return WrongKind(root, "value", "state.CheckpointData");
  ASSIGN_OR_RETURN(const Value list, Member(root, kList, ValueKind::kArray,
                                            StrCat("struct field CheckpointData.", kList),
                                            "state.ClaimInfoStateList"));
  if (!list.has_value()) return CheckpointState();
  std::vector<CheckpointClaim> claims;
  for (Value each : list.elements()) {
    ASSIGN_OR_RETURN(CheckpointClaim claim, ReadClaim(each));
    claims.push_back(std::move(claim));
  }
  return CheckpointState(std::move(claims));
}

}  // namespace

std::string EncodeCheckpoint(const CheckpointState& state) {
  std::string data =
      "{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.kubelet.k8s.io/v1\","
      "\"ClaimInfoStateList\":";
  if (!state) {
    data += "null";
  } else {
    data += '[';
    for (std::size_t i = 0; i < state->size(); ++i) {
      if (i > 0) data += ',';
      AppendClaim(data, (*state)[i]);
    }
    data += ']';
  }
  data += '}';
  std::string file = "{\"Data\":";
  api::AppendJsonString(file, data);
  file += StrCat(",\"Checksum\":", Crc32(data), "}");
  return file;
}

Result<CheckpointState> DecodeCheckpoint(std::string_view file) {
  if (file.empty()) return CheckpointState();
  ASSIGN_OR_RETURN(const api::TreePtr tree, Parse(file));
  const Value root = tree->root();
  if (root.has_value() && !root.is_object()) return WrongKind(root, "value", "state.Checkpoint");
  ASSIGN_OR_RETURN(const Value data, Member(root, "Data", ValueKind::kString,
                                            "struct field Checkpoint.Data", "string"));
  const Value checksum = Find(root, "Checksum");
  if (checksum.has_value() && (checksum.kind() != ValueKind::kInt || checksum.integer() < 0 ||
                               checksum.integer() > std::int64_t{0xffffffff})) {
    const std::string shown = checksum.kind() == ValueKind::kInt
                                  ? StrCat("number ", checksum.integer())
                                  : std::string(KindText(checksum.kind()));
    return Error{ErrorCode::kDataLoss,
                 StrCat("json: cannot unmarshal ", shown,
                        " into Go struct field Checkpoint.Checksum of type uint32")};
  }
  if (static_cast<std::uint32_t>(checksum.integer()) != Crc32(data.str())) {
    return Error{ErrorCode::kDataLoss, "checkpoint is corrupted"};
  }
  if (data.str().empty()) return CheckpointState();
  return ReadData(data.str());
}

}  // namespace drakkar::node
