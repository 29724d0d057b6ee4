#include "sdk/driver/metadata/claim_record.h"

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/tree/draft.h"

namespace drakkar::driver {
namespace {

using api::Draft;
using api::Value;

}  // namespace

std::string WriteClaimRecord(const ClaimRecord& record) {
  Draft out = {{"namespace", Draft(record.namespace_name)},
               {"name", Draft(record.name)},
               {"uid", Draft(record.uid)}};
  if (record.pod_claim_name.has_value()) out["podClaimName"] = *record.pod_claim_name;
  if (!record.pods.empty()) {
    Draft pods = Draft::Array();
    for (const std::string& uid : record.pods) pods.Append(Draft(uid));
    out["pods"] = std::move(pods);
  }
  out["requests"] = Draft::Object();
  for (const auto& [name, request] : record.requests) {
    Draft devices = Draft::Array();
    for (const ClaimRecord::Device& device : request.devices) {
      Draft entry = {{"pool", Draft(device.pool_name)}, {"device", Draft(device.device_name)}};
      if (device.share_id.has_value()) entry["shareID"] = *device.share_id;
      devices.Append(std::move(entry));
    }
    out["requests"].Entry(name) = {{"reference", Draft(request.reference)},
                                   {"prepared", Draft(request.prepared)},
                                   {"devices", std::move(devices)}};
  }
  return api::WriteJson(out.Freeze()->root(), {.indent = 2, .final_newline = true});
}

Result<ClaimRecord> ReadClaimRecord(std::string_view text) {
  ASSIGN_OR_RETURN(const api::TreePtr tree, api::ParseJson(text));
  const Value root = tree->root();
  ClaimRecord record;
  record.namespace_name = root["namespace"].str();
  record.name = root["name"].str();
  record.uid = root["uid"].str();
  if (record.namespace_name.empty() || record.name.empty() || record.uid.empty() ||
      !root["requests"].is_object()) {
    return Error{ErrorCode::kDataLoss, "not a claim record"};
  }
  if (const Value name = root["podClaimName"]; name.is_string()) {
    record.pod_claim_name = std::string(name.str());
  }
  for (const Value uid : root["pods"].elements()) record.pods.emplace_back(uid.str());
  for (const auto& [key, name, request] : root["requests"].members()) {
    ClaimRecord::Request& entry = record.requests[std::string(name)];
    entry.reference = request["reference"].str();
    entry.prepared = request["prepared"].str();
    for (const Value device : request["devices"].elements()) {
      ClaimRecord::Device& known = entry.devices.emplace_back();
      known.pool_name = device["pool"].str();
      known.device_name = device["device"].str();
      if (const Value share = device["shareID"]; share.is_string()) {
        known.share_id = std::string(share.str());
      }
    }
  }
  return record;
}

}  // namespace drakkar::driver
