#include "cli/pod_containers.h"

#include "base/text/text.h"

namespace drakkar::cli {

std::string DefaultContainer(api::Value pod, Console& console) {
  const std::string annotated(
      pod["metadata"]["annotations"].Entry("kubectl.kubernetes.io/default-container").str());
  if (!annotated.empty()) return annotated;
  const std::string first(pod["spec"]["containers"].at(0)["name"].str());
  std::vector<std::string> all;
  for (api::Value container : pod["spec"]["containers"].elements()) {
    all.emplace_back(container["name"].str());
  }
  for (api::Value container : pod["spec"]["initContainers"].elements()) {
    all.push_back(StrCat(container["name"].str(), " (init)"));
  }
  if (all.size() > 1) {
    console.Err(StrCat("Defaulted container ", Quote(first), " out of: ", Join(all, ", "), "\n"));
  }
  return first;
}

}  // namespace drakkar::cli
