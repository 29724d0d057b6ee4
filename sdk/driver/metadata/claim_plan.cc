#include "sdk/driver/metadata/claim_plan.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "api/meta/names.h"
#include "api/metadata/paths.h"
#include "base/env/file_system.h"
#include "base/text/text.h"
#include "cdi/spec_writer.h"
#include "cdi/validate.h"
#include "claims/claim.h"

namespace drakkar::driver {
namespace {

using metadata::BaseRequest;
using metadata::Dialect;

constexpr char kClass[] = "metadata";
constexpr std::size_t kMaxUidBytes = 128;

}  // namespace

Result<void> CheckClaimNames(std::string_view namespace_name, std::string_view name,
                             std::string_view uid) {
  if (!api::CheckDnsLabel(namespace_name).empty()) {
    return InvalidArgument("namespace " + Quote(namespace_name) + " is not a DNS label");
  }
  if (!api::CheckDnsSubdomain(name).empty()) {
    return InvalidArgument("claim name " + Quote(name) + " is not a DNS subdomain");
  }
  const bool plain = std::ranges::all_of(uid, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (!plain || uid.size() > kMaxUidBytes || uid.starts_with('-')) {
    return InvalidArgument("claim UID " + Quote(uid) + " is not a UID");
  }
  return Ok();
}

Result<void> CheckRequestName(std::string_view request) {
  if (api::CheckDnsLabel(request).empty()) return Ok();
  return InvalidArgument("request " + Quote(request) + " is not a DNS label");
}

std::string MetadataPlaces::ClaimDirectory(std::string_view namespace_name,
                                           std::string_view name) const {
  return JoinPath(JoinPath(directory, metadata::kHostDirectory), StrCat(namespace_name, "_", name));
}

std::string MetadataPlaces::RequestDirectory(const ClaimRecord& record,
                                             const std::string& request) const {
  return JoinPath(ClaimDirectory(record.namespace_name, record.name), request);
}

std::string MetadataPlaces::MetadataPath(const ClaimRecord& record,
                                         const std::string& request) const {
  return JoinPath(RequestDirectory(record, request), metadata::kHostFile);
}

std::string MetadataPlaces::ContainerFilePath(const ClaimRecord& record,
                                              const std::string& request) const {
  return JoinPath(RequestDirectory(record, request), StrCat(driver_name, metadata::kFileSuffix));
}

std::string MetadataPlaces::SpecPrefix() const {
  return StrCat(driver_name, "_", kClass, "_");
}

std::string MetadataPlaces::SpecPrefixOf(std::string_view claim_uid) const {
  return StrCat(SpecPrefix(), claim_uid, "_");
}

std::string MetadataPlaces::SpecPath(const ClaimRecord& record, const std::string& request) const {
  return JoinPath(cdi_directory, StrCat(SpecPrefixOf(record.uid), request, ".json"));
}

std::string MetadataPlaces::SpecKind() const {
  return StrCat(driver_name, "/", kClass);
}

std::string MetadataPlaces::SpecDevice(const ClaimRecord& record,
                                       const std::string& request) const {
  return StrCat(record.uid, "_", request);
}

Result<std::string> MetadataPlaces::SpecText(const ClaimRecord& record, const std::string& request,
                                             bool is_shared) const {
  const bool from_template = record.pod_claim_name.has_value() && !record.pod_claim_name->empty();
  std::vector<std::string> container_directories;
  if (dialect == Dialect::kKep) {
    container_directories.push_back(
        StrCat(metadata::kContainerDirectory, "/", record.name, "/", request));
  }
  container_directories.push_back(
      StrCat(metadata::kKubernetesContainerDirectory, "/",
             from_template ? metadata::kTemplatesDirectory : metadata::kClaimsDirectory, "/",
             from_template ? *record.pod_claim_name : record.name, "/", request));
  cdi::Device device;
  device.name = SpecDevice(record, request);
  const auto mount = [&](std::string host_path, std::string container_path) {
    device.container_edits.mounts.push_back({.host_path = std::move(host_path),
                                             .container_path = std::move(container_path),
                                             .options = {"ro", "bind"}});
  };
  for (const std::string& place : container_directories) {
    const bool directory_alone = dialect == Dialect::kKep && !is_shared;
    if (directory_alone) {
      mount(RequestDirectory(record, request), place);
      continue;
    }
    // A mounted file keeps the content it had when the container started: complete, but possibly
    // outdated.
    mount(MetadataPath(record, request), StrCat(place, "/", driver_name, metadata::kFileSuffix));
    if (dialect == Dialect::kKubernetes) continue;
    mount(RequestDirectory(record, request),
          StrCat(place, "/", driver_name, metadata::kLiveDirectorySuffix));
  }
  cdi::Spec spec;
  spec.kind = SpecKind();
  spec.devices.push_back(std::move(device));
  spec.cdi_version = cdi::MinimumVersion(spec);
  RETURN_IF_ERROR(cdi::ValidateSpec(spec));
  std::string text = cdi::WriteSpecJson(spec);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<ClaimPlan> PlanClaim(const api::Object& claim, const MetadataPlaces& places) {
  ClaimPlan plan;
  ClaimRecord& record = plan.record;
  record.namespace_name = claim.namespace_();
  record.name = claim.name();
  record.uid = claim.uid();
  RETURN_IF_ERROR(CheckClaimNames(record.namespace_name, record.name, record.uid));
  if (const api::Value name = claim["metadata"]["annotations"].Entry(claims::kPodClaimAnnotation);
      name.is_string()) {
    record.pod_claim_name = std::string(name.str());
    if (!name.str().empty() && !api::CheckDnsLabel(name.str()).empty()) {
      return InvalidArgument("the claim's name in the pod " + Quote(name.str()) +
                             " is not a DNS label");
    }
  }
  for (const api::Value consumer : claim["status"]["reservedFor"].elements()) {
    if (claims::IsPod(consumer)) record.pods.emplace_back(consumer["uid"].str());
  }
  // Kubernetes uses the devices that the driver returned
  if (places.dialect == Dialect::kKubernetes) return plan;
  std::set<std::string> shared;
  for (const api::Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
    if (result["driver"].str() != places.driver_name) {
      shared.insert(BaseRequest(result["request"].str()));
      continue;
    }
    ClaimRecord::Request& request = record.requests[BaseRequest(result["request"].str())];
    request.reference = result["request"].str();
    ClaimRecord::Device& device = request.devices.emplace_back();
    device.pool_name = result["pool"].str();
    device.device_name = result["device"].str();
    if (const api::Value share = result["shareID"]; share.is_string())
      device.share_id = std::string(share.str());
  }
  for (const auto& [name, request] : record.requests) {
    RETURN_IF_ERROR(CheckRequestName(name));
    ASSIGN_OR_RETURN(plan.specs[name], places.SpecText(record, name, shared.contains(name)));
  }
  return plan;
}

}  // namespace drakkar::driver
