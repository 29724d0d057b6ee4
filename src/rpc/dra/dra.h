#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/result/result.h"

namespace drakkar::rpc {

// The DRA plugin service in plain types. v1 is the hub; v1beta1 only lacks Device.share_id.

enum class DraVersion { kV1, kV1beta1 };

// "v1.DRAPlugin", "v1beta1.DRAPlugin": the names in PluginInfo.supported_versions.
std::string_view DraServiceName(DraVersion version);
std::optional<DraVersion> FindDraVersion(std::string_view service_name);

// A service of our own: a node that is about to call NodePrepareResources announces the claims and
// their content, so that the driver need not fetch them. Drivers that support it list it in
// PluginInfo.supported_versions; other nodes ignore it.
inline constexpr std::string_view kAnnouncementService = "drakkar.v1.PrepareAnnouncements";

struct ClaimReference {
  std::string namespace_name;
  std::string uid;
  std::string name;

  bool operator==(const ClaimReference&) const = default;
};

struct AnnouncedClaim {
  ClaimReference reference;
  std::string object;  // JSON of resource.k8s.io/v1, as the node has just read it; may be empty

  bool operator==(const AnnouncedClaim&) const = default;
};

struct PreparedDevice {
  std::vector<std::string> request_names;  // empty: belongs to all requests of the claim
  std::string pool_name;
  std::string device_name;
  std::vector<std::string> cdi_device_ids;
  std::optional<std::string> share_id;

  bool operator==(const PreparedDevice&) const = default;
};

struct PrepareResult {
  std::vector<PreparedDevice> devices;
  std::string error;  // not empty: this claim failed, `devices` means nothing

  bool operator==(const PrepareResult&) const = default;
};

struct UnprepareResult {
  std::string error;

  bool operator==(const UnprepareResult&) const = default;
};

// Keyed by claim UID. Not checked against the request: the caller verifies that there is exactly
// one result for each claim.
using PrepareResults = std::map<std::string, PrepareResult>;
using UnprepareResults = std::map<std::string, UnprepareResult>;

using PrepareDone = absl::AnyInvocable<void(Result<PrepareResults>)>;
using UnprepareDone = absl::AnyInvocable<void(Result<UnprepareResults>)>;
using AnnounceDone = absl::AnyInvocable<void()>;

// Implemented by drivers. Runs on the server's loop; `done` is called once, immediately or later,
// on the same loop. Dropping `done` answers Internal. Calls may overlap and may be repeated: both
// operations are idempotent.
class DraPluginService {
 public:
  virtual ~DraPluginService() = default;
  virtual void NodePrepareResources(std::vector<ClaimReference> claims, PrepareDone done) = 0;
  virtual void NodeUnprepareResources(std::vector<ClaimReference> claims, UnprepareDone done) = 0;
  // NodePrepareResources will probably follow for these claims, but need not, so nothing may be
  // changed for them yet. `done` may wait until then; answering sooner only wakes the node.
  virtual void AnnouncePrepare(std::vector<AnnouncedClaim>, AnnounceDone done) { done(); }
};

}  // namespace drakkar::rpc
