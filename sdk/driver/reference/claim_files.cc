#include "sdk/driver/reference/claim_files.h"

#include <algorithm>
#include <set>
#include <utility>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/names.h"
#include "api/metadata/paths.h"
#include "api/metadata/text.h"
#include "base/text/text.h"
#include "cdi/names.h"
#include "cdi/spec_reader.h"
#include "cdi/spec_writer.h"
#include "cdi/validate.h"

namespace drakkar::driver {
namespace {

constexpr char kContainerDirectory[] = "/var/run/drakkar/devices";
constexpr char kClass[] = "claim";
constexpr std::string_view kJson = ".json";
constexpr char kClaimAnnotation[] = "/claim";  // namespace/name; the prefix is the driver's name
constexpr char kDevicesAnnotation[] = "/devices";  // names, comma-separated
constexpr std::size_t kMaxUidBytes = 128;

// UIDs become file names, so only letters, digits and dashes are allowed.
Result<void> CheckUid(std::string_view uid) {
  const bool plain = std::all_of(uid.begin(), uid.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (uid.empty() || uid.size() > kMaxUidBytes || !plain || uid.front() == '-') {
    return InvalidArgument("claim UID " + Quote(uid) + " is not a UID");
  }
  return Ok();
}

// Attributes and capacities by name; a capacity takes precedence over an attribute of the same
// name.
std::map<std::string, std::string> Facts(const SimulatedDevice& device) {
  std::map<std::string, std::string> facts;
  for (const auto& [name, value] : device.device.attributes)
    facts[name] = metadata::AttributeText(value, ",");
  for (const auto& [name, quantity] : device.device.capacity) facts[name] = quantity;
  return facts;
}

// The parameters for a request: the last entry that applies, with those of the claim after those of
// the class.
std::string ParametersFor(api::Value claim, std::string_view driver, const std::string& request) {
  std::string parameters;
  for (const api::Value entry : claim["status"]["allocation"]["devices"]["config"].elements()) {
    if (entry["opaque"]["driver"].str() != driver) continue;
    bool applies = entry["requests"].empty();
    for (const api::Value name : entry["requests"].elements()) {
      applies = applies || metadata::BaseRequest(name.str()) == request;
    }
    if (!applies) continue;
    const api::Value value = entry["opaque"]["parameters"];
    parameters =
        value.kind() == api::ValueKind::kRaw ? std::string(value.str()) : api::WriteJson(value);
  }
  return parameters;
}

}  // namespace

std::string ClaimFiles::OldRecordPath(const std::string& claim_uid) const {
  return JoinPath(JoinPath(options_.directory, "claims"), StrCat(claim_uid, kJson));
}

std::string ClaimFiles::DeviceDirectory(const std::string& device) const {
  return JoinPath(JoinPath(options_.directory, "devices"), device);
}

std::string ClaimFiles::SpecPath(const std::string& claim_uid) const {
  return JoinPath(options_.cdi_directory,
                  StrCat(options_.driver_name, "_", kClass, "_", claim_uid, ".json"));
}

Result<void> ClaimFiles::WriteDevice(const std::string& name,
                                     const std::map<std::string, std::string>& facts) {
  const std::string directory = DeviceDirectory(name);
  const auto known = written_.find(name);
  if (known != written_.end() && known->second == facts && options_.files.Exists(directory))
    return Ok();
  RETURN_IF_ERROR(options_.files.EnsureFile(JoinPath(directory, "name"), name + "\n", 0644));
  for (const auto& [fact, text] : facts) {
    std::string file = fact;
    std::replace(file.begin(), file.end(), '/', '_');
    if (file == "name") continue;  // reserved for the device's name
    RETURN_IF_ERROR(options_.files.EnsureFile(JoinPath(directory, file), text + "\n", 0644));
  }
  written_[name] = facts;
  return Ok();
}

Result<cdi::Device> ClaimFiles::DescribeRequest(
    const api::Object& claim, const std::string& request,
    const std::vector<const SimulatedDevice*>& devices) {
  const std::string uid(claim.uid());
  cdi::Device result;
  result.name = StrCat(uid, "-", request);
  std::vector<std::string> names;
  for (const SimulatedDevice* device : devices) names.push_back(device->device.name);
  std::vector<std::string>& env = result.container_edits.env;
  env.push_back("DRAKKAR_DEVICES=" + Join(names, ","));
  env.push_back(
      StrCat("DRAKKAR_DEVICE_", metadata::EnvironmentName(request), "=", Join(names, ",")));
  for (const SimulatedDevice* device : devices) {
    const std::string& name = device->device.name;
    const std::map<std::string, std::string> facts = Facts(*device);
    for (const auto& [fact, text] : facts) {
      env.push_back(StrCat("DRAKKAR_", metadata::EnvironmentName(name), "_",
                           metadata::EnvironmentName(fact), "=", text));
    }
    RETURN_IF_ERROR(WriteDevice(name, facts));
    result.container_edits.mounts.push_back({.host_path = DeviceDirectory(name),
                                             .container_path = JoinPath(kContainerDirectory, name),
                                             .options = {"ro", "bind"}});
  }
  const std::string parameters = ParametersFor(claim.root(), options_.driver_name, request);
  if (!parameters.empty()) {
    env.push_back(StrCat("DRAKKAR_CONFIG_", metadata::EnvironmentName(request), "=", parameters));
  }
  return result;
}

Result<std::vector<PreparedDevice>> ClaimFiles::Prepare(const api::Object& claim,
                                                        const std::string& pool_name,
                                                        const Devices& devices) {
  const std::string uid(claim.uid());
  RETURN_IF_ERROR(CheckUid(uid));
  std::vector<PreparedDevice> prepared;
  std::map<std::string, std::vector<const SimulatedDevice*>> by_request;
  for (const api::Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
    if (result["driver"].str() != options_.driver_name) continue;
    const std::string name(result["device"].str());
    const std::string request = metadata::BaseRequest(result["request"].str());
    if (result["pool"].str() != pool_name) {
      return FailedPrecondition(StrCat("device ", name, " is in pool ", result["pool"].str(),
                                       ", but this driver serves pool ", pool_name));
    }
    const auto found = devices.find(name);
    if (found == devices.end()) return NotFound(StrCat("device ", name, " does not exist"));
    if (!api::CheckDnsLabel(request).empty()) {
      return InvalidArgument("request " + Quote(request) + " is not a DNS label");
    }
    PreparedDevice device;
    device.request_names = {std::string(result["request"].str())};
    device.pool_name = pool_name;
    device.device_name = name;
    if (const api::Value share = result["shareID"]; share.is_string()) {
      device.share_id = std::string(share.str());
    }
    std::vector<const SimulatedDevice*>& together = by_request[request];
    // One CDI device has the edits for the whole request, so one id is enough.
    if (together.empty()) {
      device.cdi_device_ids = {
          cdi::QualifiedName{options_.driver_name, kClass, StrCat(uid, "-", request)}.ToString()};
    }
    if (std::find(together.begin(), together.end(), &found->second) == together.end()) {
      together.push_back(&found->second);
    }
    prepared.push_back(std::move(device));
  }
  if (prepared.empty()) return FailedPrecondition("the claim has no device of this driver");

  cdi::Spec spec;
  spec.kind = StrCat(options_.driver_name, "/", kClass);
  std::vector<std::string> names;
  for (const PreparedDevice& device : prepared) names.push_back(device.device_name);
  spec.annotations = {{StrCat(options_.driver_name, kClaimAnnotation), claim.qualified_name()},
                      {StrCat(options_.driver_name, kDevicesAnnotation), Join(names, ",")}};
  for (const auto& [request, together] : by_request) {
    ASSIGN_OR_RETURN(cdi::Device device, DescribeRequest(claim, request, together));
    spec.devices.push_back(std::move(device));
  }
  spec.cdi_version = cdi::MinimumVersion(spec);
  RETURN_IF_ERROR(cdi::ValidateSpec(spec));
  RETURN_IF_ERROR(options_.files.EnsureFile(SpecPath(uid), cdi::WriteSpecJson(spec), 0644));
  return prepared;
}

Result<void> ClaimFiles::Unprepare(const std::string& claim_uid) {
  // An invalid UID cannot have been prepared.
  if (!CheckUid(claim_uid).ok()) return Ok();
  for (const std::string& path : {SpecPath(claim_uid), OldRecordPath(claim_uid)}) {
    auto removed = options_.files.Remove(path);
    if (!removed.ok() && removed.error().code != ErrorCode::kNotFound) return removed;
  }
  return Ok();
}

Result<ClaimFiles::Records> ClaimFiles::ReadRecords() {
  Records records;
  RETURN_IF_ERROR(ReadOldRecords(records));
  auto specs = options_.files.ListDirectory(options_.cdi_directory);
  if (!specs.ok()) {
    if (specs.error().code == ErrorCode::kNotFound) return records;
    return std::move(specs).error();
  }
  const std::string prefix = StrCat(options_.driver_name, "_", kClass, "_");
  for (const std::string& file : *specs) {
    if (!file.starts_with(prefix) || !file.ends_with(kJson)) continue;
    const std::string uid = file.substr(prefix.size(), file.size() - prefix.size() - kJson.size());
    if (!CheckUid(uid).ok()) continue;
    Record& record = records[uid];
    record.claim.uid = uid;
    auto text = options_.files.ReadFile(SpecPath(uid));
    if (!text.ok()) continue;
    const auto spec = cdi::ReadSpecJson(*text);
    if (!spec.ok()) continue;
    const auto claim = spec->annotations.find(StrCat(options_.driver_name, kClaimAnnotation));
    const auto devices = spec->annotations.find(StrCat(options_.driver_name, kDevicesAnnotation));
    if (claim == spec->annotations.end() || devices == spec->annotations.end()) continue;
    const std::size_t slash = claim->second.find('/');
    if (slash == std::string::npos) continue;
    record.claim.namespace_name = claim->second.substr(0, slash);
    record.claim.name = claim->second.substr(slash + 1);
    record.devices.clear();
    for (const std::string_view device : Split(devices->second, ','))
      record.devices.emplace_back(device);
  }
  return records;
}

Result<void> ClaimFiles::ReadOldRecords(Records& records) {
  auto names = options_.files.ListDirectory(DirectoryName(OldRecordPath("x")));
  if (!names.ok()) {
    if (names.error().code == ErrorCode::kNotFound) return Ok();
    return std::move(names).error();
  }
  for (const std::string& name : *names) {
    if (!name.ends_with(kJson)) continue;
    const std::string uid = name.substr(0, name.size() - kJson.size());
    if (!CheckUid(uid).ok()) continue;
    Record& record = records[uid];
    record.claim.uid = uid;
    auto text = options_.files.ReadFile(OldRecordPath(uid));
    if (!text.ok()) continue;
    auto tree = api::ParseJson(*text);
    if (!tree.ok()) continue;
    const api::Value root = (*tree)->root();
    record.claim.namespace_name = root["namespace"].str();
    record.claim.name = root["name"].str();
    for (const api::Value device : root["devices"].elements())
      record.devices.emplace_back(device.str());
  }
  return Ok();
}

Result<std::vector<rpc::ClaimReference>> ClaimFiles::Prepared() {
  ASSIGN_OR_RETURN(const Records records, ReadRecords());
  std::vector<rpc::ClaimReference> list;
  for (const auto& [uid, record] : records) list.push_back(record.claim);
  return list;
}

Result<void> ClaimFiles::RemoveOldDevices(const Devices& known) {
  auto names = options_.files.ListDirectory(DirectoryName(DeviceDirectory("x")));
  if (!names.ok())
    return names.error().code == ErrorCode::kNotFound ? Ok()
                                                      : Result<void>(std::move(names).error());
  ASSIGN_OR_RETURN(const Records records, ReadRecords());
  std::set<std::string> held;
  for (const auto& [uid, record] : records) {
    if (record.devices.empty()) return Ok();  // the record is unreadable and may hold any device
    held.insert(record.devices.begin(), record.devices.end());
  }
  for (const std::string& name : *names) {
    if (!known.contains(name) && !held.contains(name)) {
      RETURN_IF_ERROR(options_.files.RemoveTree(DeviceDirectory(name)));
    }
  }
  return Ok();
}

}  // namespace drakkar::driver
