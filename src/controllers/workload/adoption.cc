#include "controllers/workload/adoption.h"

#include "api/json/writer.h"
#include "api/scheme/scheme.h"

namespace drakkar::controllers {

Adoption PlanAdoption(const api::Object& owner, const api::LabelSelector& selector,
                      const OwnedIndex& index, bool (*counts)(const api::Object&)) {
  Adoption plan;
  const bool passive = owner.is_being_deleted() || selector.empty();
  for (const auto& [name, object] : index.Of(owner.uid())) {
    if (selector.Matches(object->root()["metadata"]["labels"])) {
      plan.owned.push_back(object);
    } else if (!passive && (counts == nullptr || counts(*object))) {
      plan.release.push_back(object);
    }
  }
  if (passive) return plan;
  for (const auto& [name, object] : index.Orphans(owner.namespace_())) {
    if (object->is_being_deleted() || (counts != nullptr && !counts(*object))) continue;
    if (selector.Matches(object->root()["metadata"]["labels"])) {
      plan.adopt.push_back(object);
    }
  }
  return plan;
}

api::Draft ControllerReference(const api::Object& owner, const api::KindSchema& kind) {
  return {{"apiVersion", kind.api_version()},
          {"kind", kind.kind},
          {"name", owner.name()},
          {"uid", owner.uid()},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

std::string AdoptPatch(const api::Object& owner, const api::KindSchema& kind,
                       const api::Object& object) {
  api::Draft patch = api::Draft::Object();
  patch["metadata"]["ownerReferences"].Append(ControllerReference(owner, kind));
  patch["metadata"]["uid"] = object.uid();
  return api::WriteJson(patch.Freeze()->root());
}

std::string ReleasePatch(const api::Object& owner, const api::Object& object) {
  api::Draft patch = api::Draft::Object();
  api::Draft& reference = patch["metadata"]["ownerReferences"].Append(api::Draft::Object());
  reference.Entry("$patch") = "delete";
  reference["uid"] = owner.uid();
  patch["metadata"]["uid"] = object.uid();
  return api::WriteJson(patch.Freeze()->root());
}

}  // namespace drakkar::controllers
