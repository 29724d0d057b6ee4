#include "apiserver/http/pod_containers.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::apiserver {

std::optional<Failure> ChooseContainer(const api::Object& pod, std::string& container) {
  std::vector<std::string_view> containers;
  for (const api::FieldName list :
       api::FieldNames{"initContainers", "containers", "ephemeralContainers"}) {
    for (api::Value each : pod["spec"][list].elements()) containers.push_back(each["name"].str());
  }
  if (container.empty()) {
    const api::Value regular = pod["spec"]["containers"];
    if (regular.size() > 1) {
      return api::StatusBadRequest(StrCat("a container name must be specified for pod ", pod.name(),
                                          ", choose one of: [", Join(containers, " "), "]"));
    }
    container = regular.at(0)["name"].str();
  } else if (std::ranges::find(containers, container) == containers.end()) {
    return api::StatusBadRequest(
        StrCat("container ", container, " is not valid for pod ", pod.name()));
  }
  return std::nullopt;
}

}  // namespace drakkar::apiserver
