#include "apiserver/registry/unattended.h"

#include <array>

namespace drakkar::apiserver {
namespace {

using api::Value;

bool WantsUserNamespace(Value pod) {
  return pod["spec"]["hostUsers"].optional_boolean() == false;
}

constexpr std::string_view kStorage = "storage.k8s.io";
constexpr std::string_view kNetworking = "networking.k8s.io";
constexpr std::string_view kFlowControl = "flowcontrol.apiserver.k8s.io";

// In the order of schema/kinds.schema.
constexpr std::array kTable = {
    Unattended{"", "Pod", WantsUserNamespace,
               "spec.hostUsers: Drakkar's node agent does not support user namespaces and rejects "
               "pods with hostUsers: false; a kubelet may run the pod"},
    Unattended{
        "", "Service", nullptr,
        "the Service has an address and endpoints, but nothing forwards its traffic; kube-proxy "
        "does"},
    Unattended{"", "Endpoints", nullptr,
               "the Endpoints are stored, but nothing forwards traffic to them; kube-proxy does"},
    Unattended{"", "PersistentVolume", nullptr,
               "the PersistentVolume is stored, but nothing binds, attaches or mounts it"},
    Unattended{"", "PersistentVolumeClaim", nullptr,
               "the PersistentVolumeClaim is stored, but nothing provisions or binds a volume for "
               "it, and pods that use it stay pending"},
    Unattended{"scheduling.k8s.io", "Workload", nullptr,
               "the Workload is stored, but Drakkar's scheduler places pods one by one and no "
               "controller makes PodGroups from its templates"},
    Unattended{
        "scheduling.k8s.io", "PodGroup", nullptr,
        "the PodGroup is stored; only with the gates GenericWorkload and "
        "DRAWorkloadResourceClaims are its claims made and its pods placed, one by one. Pods "
        "of a gang stay pending"},
    Unattended{kStorage, "StorageClass", nullptr,
               "the StorageClass is stored, but nothing provisions volumes for it"},
    Unattended{kStorage, "CSIDriver", nullptr,
               "the CSIDriver is stored, but Drakkar's node agent mounts no CSI volumes"},
    Unattended{kStorage, "CSINode", nullptr,
               "the CSINode is stored, but no Drakkar component reads it"},
    Unattended{kStorage, "CSIStorageCapacity", nullptr,
               "the CSIStorageCapacity is stored, but the scheduler does not read it"},
    Unattended{kStorage, "VolumeAttachment", nullptr,
               "the VolumeAttachment is stored, but no Drakkar component attaches volumes; the "
               "attacher of its CSI driver does"},
    Unattended{kStorage, "VolumeAttributesClass", nullptr,
               "the VolumeAttributesClass is stored, but nothing applies it to volumes"},
    Unattended{"autoscaling", "HorizontalPodAutoscaler", nullptr,
               "the HorizontalPodAutoscaler is stored, but nothing scales its target; an attached "
               "kube-controller-manager with a metrics server does"},
    Unattended{"discovery.k8s.io", "EndpointSlice", nullptr,
               "the EndpointSlice is stored, but nothing forwards traffic to it; kube-proxy does"},
    Unattended{kNetworking, "Ingress", nullptr,
               "the Ingress is stored, but Drakkar has no ingress controller"},
    Unattended{kNetworking, "IngressClass", nullptr,
               "the IngressClass is stored, but Drakkar has no ingress controller"},
    Unattended{kNetworking, "NetworkPolicy", nullptr,
               "the NetworkPolicy is stored, but nothing enforces it"},
    Unattended{kNetworking, "IPAddress", nullptr,
               "the IPAddress is stored, but cluster IPs are not allocated from it"},
    Unattended{kNetworking, "ServiceCIDR", nullptr,
               "the ServiceCIDR is stored, but cluster IPs are not allocated from it"},
    Unattended{kFlowControl, "FlowSchema", nullptr,
               "the FlowSchema is stored, but requests are not queued by priority"},
    Unattended{kFlowControl, "PriorityLevelConfiguration", nullptr,
               "the PriorityLevelConfiguration is stored, but requests are not queued by "
               "priority"},
    Unattended{"certificates.k8s.io", "ClusterTrustBundle", nullptr,
               "the ClusterTrustBundle is stored, but Drakkar's node agent does not mount it into "
               "pods; a kubelet does"},
    Unattended{"certificates.k8s.io", "PodCertificateRequest", nullptr,
               "the PodCertificateRequest is stored, but no signer of Drakkar's issues it; the "
               "signer that it names does, if somebody installed it"},
};

}  // namespace

std::span<const Unattended> UnattendedKinds() {
  return kTable;
}

std::vector<const Unattended*> UnattendedOf(const api::KindSchema& kind) {
  std::vector<const Unattended*> lines;
  for (const Unattended& line : kTable) {
    if (line.group == kind.group && line.kind == kind.kind) lines.push_back(&line);
  }
  return lines;
}

std::vector<std::string> UnattendedWarnings(std::span<const Unattended* const> lines, Value object,
                                            Value before) {
  std::vector<std::string> warnings;
  for (const Unattended* line : lines) {
    const auto holds = [&](Value each) {
      return line->concerns == nullptr || line->concerns(each);
    };
    if (holds(object) && !(before.has_value() && holds(before))) {
      warnings.emplace_back(line->warning);
    }
  }
  return warnings;
}

}  // namespace drakkar::apiserver
