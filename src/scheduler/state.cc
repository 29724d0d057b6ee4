#include "scheduler/state.h"

#include "api/tree/draft.h"
#include "device/to_api.h"
#include "scheduler/cache/claim_cache.h"
#include "scheduler/cache/placements.h"

namespace drakkar::scheduler {

using api::ObjectPtr;

ObjectPtr WithPending(const CachedClaim& claim, std::string_view pod_name) {
  if (claim.pending == nullptr) return claim.latest;
  api::Draft draft(claim.latest->tree());
  draft["status"]["allocation"] = device::AllocationToApi(*claim.pending);
  if (!pod_name.empty()) {
    draft["status"]["reservedFor"].Append(
        {{"resource", "pods"}, {"name", pod_name}, {"uid", claim.pending_pod}});
  }
  return std::make_shared<const api::Object>(draft.Freeze());
}

ObjectPtr WithPlacement(const ObjectPtr& pod, const Placements& placements) {
  if (!(*pod)["spec"]["nodeName"].str().empty()) return pod;
  const std::string uid(pod->uid());
  const std::string* node = placements.FindNodeOf(uid);
  const std::string nominated = placements.NominatedNode(uid);
  const bool is_written = nominated == (*pod)["status"]["nominatedNodeName"].str();
  if (node == nullptr && is_written) return pod;
  api::Draft draft(pod->tree());
  if (node != nullptr) draft["spec"]["nodeName"] = *node;
  if (!is_written) draft["status"]["nominatedNodeName"] = nominated;
  return std::make_shared<const api::Object>(draft.Freeze());
}

}  // namespace drakkar::scheduler
