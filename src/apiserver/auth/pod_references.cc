#include "apiserver/auth/pod_references.h"

#include <algorithm>

#include "base/text/text.h"
#include "claims/pod_claims.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

class Collector {
 public:
  explicit Collector(const api::Object& pod) : pod_(pod) {}

  std::vector<std::string> Collect() {
    const Value spec = pod_["spec"];
    Add("pods", pod_.name());
    Add("serviceaccounts", spec["serviceAccountName"].str());
    for (Value each : spec["imagePullSecrets"].elements()) Add("secrets", each["name"].str());
    for (const api::FieldName list :
         api::FieldNames{"containers", "initContainers", "ephemeralContainers"}) {
      for (Value container : spec[list].elements()) AddContainer(container);
    }
    for (Value volume : spec["volumes"].elements()) AddVolume(volume);
    AddClaims();
    std::ranges::sort(found_);
    const auto rest = std::ranges::unique(found_);
    found_.erase(rest.begin(), rest.end());
    return std::move(found_);
  }

 private:
  void Add(std::string_view resource, std::string_view name) {
    if (!name.empty()) found_.push_back(StrCat(resource, "/", pod_.namespace_(), "/", name));
  }

  void AddContainer(Value container) {
    for (Value each : container["env"].elements()) {
      Add("secrets", each["valueFrom"]["secretKeyRef"]["name"].str());
      Add("configmaps", each["valueFrom"]["configMapKeyRef"]["name"].str());
    }
    for (Value each : container["envFrom"].elements()) {
      Add("secrets", each["secretRef"]["name"].str());
      Add("configmaps", each["configMapRef"]["name"].str());
    }
  }

  void AddVolume(Value volume) {
    Add("secrets", volume["secret"]["secretName"].str());
    Add("configmaps", volume["configMap"]["name"].str());
    Add("persistentvolumeclaims", volume["persistentVolumeClaim"]["claimName"].str());
    if (volume["ephemeral"].has_value()) {
      Add("persistentvolumeclaims", StrCat(pod_.name(), "-", volume["name"].str()));
    }
    Add("secrets", volume["csi"]["nodePublishSecretRef"]["name"].str());
    for (Value source : volume["projected"]["sources"].elements()) {
      Add("secrets", source["secret"]["name"].str());
      Add("configmaps", source["configMap"]["name"].str());
    }
    for (const api::FieldName each :
         api::FieldNames{"cephfs", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"}) {
      Add("secrets", volume[each]["secretRef"]["name"].str());
    }
    Add("secrets", volume["azureFile"]["secretName"].str());
  }

  void AddClaims() {
    for (const std::string& name : claims::ListClaimNames(pod_.root())) Add("resourceclaims", name);
  }

  const api::Object& pod_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> ReferencesOf(const api::Object& pod) {
  return Collector(pod).Collect();
}

void PodReferences::Add(const api::Object& pod) {
  const std::string_view node = pod["spec"]["nodeName"].str();
  if (node.empty()) return;
  Counts& counts = nodes_[std::string(node)];
  for (std::string& key : ReferencesOf(pod)) ++counts[std::move(key)];
}

void PodReferences::Remove(const api::Object& pod) {
  const auto counts = nodes_.find(pod["spec"]["nodeName"].str());
  if (counts == nodes_.end()) return;
  for (const std::string& key : ReferencesOf(pod)) {
    const auto found = counts->second.find(key);
    if (found != counts->second.end() && --found->second <= 0) counts->second.erase(found);
  }
  if (counts->second.empty()) nodes_.erase(counts);
}

bool PodReferences::Has(std::string_view node, std::string_view resource,
                        std::string_view namespace_, std::string_view name) const {
  const auto counts = nodes_.find(node);
  return counts != nodes_.end() &&
         counts->second.contains(StrCat(resource, "/", namespace_, "/", name));
}

}  // namespace drakkar::apiserver
