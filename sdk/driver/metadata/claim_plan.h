#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/meta/object.h"
#include "api/metadata/device_metadata.h"
#include "base/result/result.h"
#include "sdk/driver/metadata/claim_record.h"

namespace drakkar::driver {

// Everything that becomes part of a path is checked first.
Result<void> CheckClaimNames(std::string_view namespace_name, std::string_view name,
                             std::string_view uid);
Result<void> CheckRequestName(std::string_view request);

// Where one driver has the metadata of its claims, and how containers get it.
struct MetadataPlaces {
  std::string driver_name;
  std::string directory;  // the driver's own
  std::string cdi_directory;
  metadata::Dialect dialect = metadata::Dialect::kKep;

  std::string ClaimDirectory(std::string_view namespace_name, std::string_view name) const;
  // What containers mount: a directory, so that they see files that are replaced in it.
  std::string RequestDirectory(const ClaimRecord& record, const std::string& request) const;
  std::string MetadataPath(const ClaimRecord& record, const std::string& request) const;
  // The same document under the name that containers read.
  std::string ContainerFilePath(const ClaimRecord& record, const std::string& request) const;
  // How the names of all CDI specs begin, and those of a claim.
  std::string SpecPrefix() const;
  std::string SpecPrefixOf(std::string_view claim_uid) const;
  std::string SpecPath(const ClaimRecord& record, const std::string& request) const;
  std::string SpecKind() const;
  std::string SpecDevice(const ClaimRecord& record, const std::string& request) const;
  // The CDI spec that mounts the request's metadata. `is_shared`: other drivers have devices of the
  // request too, and each has its place in the container's directory of the request.
  Result<std::string> SpecText(const ClaimRecord& record, const std::string& request,
                               bool is_shared) const;
};

// What can be said of a claim's metadata before its devices are prepared, by the claim alone.
struct ClaimPlan {
  ClaimRecord record;  // without digests; in the dialect of Kubernetes also without requests
  std::map<std::string, std::string> specs;  // SpecText by request
};
Result<ClaimPlan> PlanClaim(const api::Object& claim, const MetadataPlaces& places);

}  // namespace drakkar::driver
