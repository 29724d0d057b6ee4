#include "apiserver/registry/pod_template.h"

#include <string>
#include <string_view>

namespace drakkar::apiserver {
namespace {

using api::Draft;

// Untagged and ":latest" images are pulled again, others only when missing.
std::string_view DefaultPullPolicy(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return "IfNotPresent";
  const std::size_t slash = image.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? image : image.substr(slash + 1);
  const std::size_t colon = last.rfind(':');
  const bool latest = colon == std::string_view::npos || last.substr(colon + 1) == "latest";
  return latest ? "Always" : "IfNotPresent";
}

void DefaultVolume(Draft& volume) {
  if (!volume.is_object()) return;
  bool has_source = false;
  for (const auto& [key, value] : volume.MutableMembers()) {
    has_source = has_source || (key->view() != "name" && value.has_value());
  }
  if (!has_source) volume["emptyDir"] = Draft::Object();
  Draft* image = volume.Find("image");
  if (image != nullptr && image->is_object() && (*image)["pullPolicy"].str().empty()) {
    (*image)["pullPolicy"] = DefaultPullPolicy((*image)["reference"].str());
  }
}

template <typename Visit>
void ForEach(Draft& spec, api::FieldName list, const Visit& visit) {
  Draft* items = spec.Find(list);
  if (items == nullptr || !items->is_array()) return;
  for (Draft& item : items->MutableElements()) visit(item);
}

}  // namespace

void DefaultPodSpec(Draft& spec) {
  if (!spec.is_object()) return;
  if (Draft* old_name = spec.Find("serviceAccount");
      old_name != nullptr && spec["serviceAccountName"].str().empty()) {
    spec["serviceAccountName"] = std::string(spec["serviceAccount"].str());
  }
  if (const std::string account(spec["serviceAccountName"].str()); !account.empty()) {
    spec["serviceAccount"] = account;
  }
  for (const api::FieldName list :
       api::FieldNames{"initContainers", "containers", "ephemeralContainers"}) {
    ForEach(spec, list, [](Draft& container) {
      if (container["imagePullPolicy"].str().empty()) {
        container["imagePullPolicy"] = DefaultPullPolicy(container["image"].str());
      }
    });
  }
  ForEach(spec, "volumes", DefaultVolume);
}

void DefaultPodTemplate(Draft& workload) {
  Draft* spec = workload.Find("spec");
  Draft* pod_template = spec == nullptr ? nullptr : spec->Find("template");
  Draft* pod = pod_template == nullptr ? nullptr : pod_template->Find("spec");
  if (pod != nullptr) DefaultPodSpec(*pod);
}

}  // namespace drakkar::apiserver
