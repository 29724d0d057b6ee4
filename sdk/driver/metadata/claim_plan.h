#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/meta/object.h"
#include "api/metadata/device_metadata.h"
#include "base/result/result.h"
#include "sdk/driver/metadata/claim_record.h"

namespace drakkar::driver {

// Validates everything that becomes part of a path.
Result<void> CheckClaimNames(std::string_view namespace_name, std::string_view name,
                             std::string_view uid);
Result<void> CheckRequestName(std::string_view request);

// Where a driver keeps the metadata of its claims, and how containers get it.
struct MetadataPlaces {
  std::string driver_name;
  std::string directory;  // the driver's plugin directory
  std::string cdi_directory;
  metadata::Dialect dialect = metadata::Dialect::kKep;

  std::string ClaimDirectory(std::string_view namespace_name, std::string_view name) const;
  // What containers mount: the directory, so that they see files replaced in it.
  std::string RequestDirectory(const ClaimRecord& record, const std::string& request) const;
  std::string MetadataPath(const ClaimRecord& record, const std::string& request) const;
  // The same document under the name that containers read.
  std::string ContainerFilePath(const ClaimRecord& record, const std::string& request) const;
  // File name prefixes of all CDI specs, and of those of a claim.
  std::string SpecPrefix() const;
  std::string SpecPrefixOf(std::string_view claim_uid) const;
  std::string SpecPath(const ClaimRecord& record, const std::string& request) const;
  std::string SpecKind() const;
  std::string SpecDevice(const ClaimRecord& record, const std::string& request) const;
  // The CDI spec that mounts the request's metadata. With `is_shared`, other drivers have devices
  // of the request too, and each has its own path in the container's directory of the request.
  Result<std::string> SpecText(const ClaimRecord& record, const std::string& request,
                               bool is_shared) const;
};

// The part of a claim's metadata that follows from the claim alone, before its devices are
// prepared.
struct ClaimPlan {
  ClaimRecord record;  // without digests; in the Kubernetes dialect also without requests
  std::map<std::string, std::string> specs;  // SpecText by request
};
Result<ClaimPlan> PlanClaim(const api::Object& claim, const MetadataPlaces& places);

}  // namespace drakkar::driver
