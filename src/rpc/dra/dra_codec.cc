#include "rpc/dra/dra_codec.h"

#include <rpc_proto/dra.pb.h>

#include <utility>

#include "rpc/grpc/limits.h"
#include "rpc/internal/codec.h"

namespace drakkar::rpc {

std::string_view DraServiceName(DraVersion version) {
  return version == DraVersion::kV1 ? "v1.DRAPlugin" : "v1beta1.DRAPlugin";
}

std::optional<DraVersion> FindDraVersion(std::string_view service_name) {
  for (const DraVersion version : {DraVersion::kV1, DraVersion::kV1beta1}) {
    if (DraServiceName(version) == service_name) return version;
  }
  return std::nullopt;
}

namespace dra {
namespace {

namespace wire = dra_wire;

std::string Method(DraVersion version, std::string_view name) {
  return StrCat("/k8s.io.kubelet.pkg.apis.dra.", DraServiceName(version), "/", name);
}

void EncodeDevice(const PreparedDevice& device, DraVersion version, wire::Device* message) {
  internal::AddStrings(device.request_names, message->mutable_request_names());
  message->set_pool_name(internal::ValidUtf8(device.pool_name));
  message->set_device_name(internal::ValidUtf8(device.device_name));
  internal::AddStrings(device.cdi_device_ids, message->mutable_cdi_device_ids());
  if (version == DraVersion::kV1 && device.share_id.has_value()) {
    message->set_share_id(internal::ValidUtf8(*device.share_id));
  }
}

PreparedDevice DecodeDevice(const wire::Device& message, DraVersion version) {
  PreparedDevice device;
  device.request_names = internal::Strings(message.request_names());
  device.pool_name = message.pool_name();
  device.device_name = message.device_name();
  device.cdi_device_ids = internal::Strings(message.cdi_device_ids());
  if (version == DraVersion::kV1 && message.has_share_id()) device.share_id = message.share_id();
  return device;
}

}  // namespace

std::string PrepareMethod(DraVersion version) {
  return Method(version, "NodePrepareResources");
}

std::string AnnounceMethod() {
  return StrCat("/", kAnnouncementService, "/AnnouncePrepare");
}

std::string UnprepareMethod(DraVersion version) {
  return Method(version, "NodeUnprepareResources");
}

std::string EncodeClaims(const std::vector<ClaimReference>& claims) {
  wire::NodePrepareResourcesRequest message;
  for (const ClaimReference& claim : claims) {
    wire::Claim* added = message.add_claims();
    added->set_namespace_(claim.namespace_name);
    added->set_uid(claim.uid);
    added->set_name(claim.name);
  }
  return message.SerializeAsString();
}

Result<std::vector<ClaimReference>> DecodeClaims(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::NodePrepareResourcesRequest>(
                                           bytes, "NodePrepareResourcesRequest"));
  std::vector<ClaimReference> claims;
  claims.reserve(static_cast<std::size_t>(message.claims_size()));
  for (const wire::Claim& claim : message.claims()) {
    claims.push_back(
        {.namespace_name = claim.namespace_(), .uid = claim.uid(), .name = claim.name()});
  }
  return claims;
}

std::string EncodeAnnouncement(const std::vector<AnnouncedClaim>& claims) {
  wire::AnnouncePrepareRequest message;
  for (const AnnouncedClaim& claim : claims) {
    wire::AnnouncedClaim* added = message.add_claims();
    added->set_namespace_(claim.reference.namespace_name);
    added->set_uid(claim.reference.uid);
    added->set_name(claim.reference.name);
    added->set_object(claim.object);
  }
  return message.SerializeAsString();
}

Result<std::vector<AnnouncedClaim>> DecodeAnnouncement(const std::string& bytes) {
  ASSIGN_OR_RETURN(auto message,
                   internal::Parse<wire::AnnouncePrepareRequest>(bytes, "AnnouncePrepareRequest"));
  std::vector<AnnouncedClaim> claims;
  claims.reserve(static_cast<std::size_t>(message.claims_size()));
  for (wire::AnnouncedClaim& claim : *message.mutable_claims()) {
    claims.push_back(
        {{.namespace_name = claim.namespace_(), .uid = claim.uid(), .name = claim.name()},
         std::move(*claim.mutable_object())});
  }
  return claims;
}

std::string EncodePrepareResults(const PrepareResults& results, DraVersion version) {
  wire::NodePrepareResourcesResponse message;
  for (const auto& [uid, result] : results) {
    wire::NodePrepareResourceResponse& added =
        (*message.mutable_claims())[internal::ValidUtf8(uid)];
    for (const PreparedDevice& device : result.devices) {
      EncodeDevice(device, version, added.add_devices());
    }
    added.set_error(internal::ValidUtf8(result.error));
  }
  return message.SerializeAsString();
}

Result<PrepareResults> DecodePrepareResults(const std::string& bytes, DraVersion version) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::NodePrepareResourcesResponse>(
                                           bytes, "NodePrepareResourcesResponse"));
  PrepareResults results;
  for (const auto& [uid, claim] : message.claims()) {
    PrepareResult& result = results[uid];
    result.error = claim.error();
    if (claim.devices_size() > kMaxDriverDevices) {
      return InvalidArgument(StrCat("NodePrepareResourcesResponse: more than ", kMaxDriverDevices,
                                    " devices for one claim"));
    }
    for (const wire::Device& device : claim.devices()) {
      result.devices.push_back(DecodeDevice(device, version));
    }
  }
  return results;
}

std::string EncodeUnprepareResults(const UnprepareResults& results) {
  wire::NodeUnprepareResourcesResponse message;
  for (const auto& [uid, result] : results) {
    (*message.mutable_claims())[internal::ValidUtf8(uid)].set_error(
        internal::ValidUtf8(result.error));
  }
  return message.SerializeAsString();
}

Result<UnprepareResults> DecodeUnprepareResults(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::NodeUnprepareResourcesResponse>(
                                           bytes, "NodeUnprepareResourcesResponse"));
  UnprepareResults results;
  for (const auto& [uid, claim] : message.claims()) results[uid].error = claim.error();
  return results;
}

}  // namespace dra
}  // namespace drakkar::rpc
