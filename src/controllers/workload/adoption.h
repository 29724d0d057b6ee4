#pragma once

#include <vector>

#include "api/meta/label_selector.h"
#include "api/tree/draft.h"
#include "controllers/workload/owned_index.h"

namespace drakkar::api {
struct KindSchema;
}

// Who controls whom: an owner adopts objects that its selector matches and nobody controls, and
// releases those it controls but no longer selects. Pure.
namespace drakkar::controllers {

struct Adoption {
  std::vector<api::ObjectPtr> owned;    // controlled and selected
  std::vector<api::ObjectPtr> adopt;    // selected, controlled by nobody
  std::vector<api::ObjectPtr> release;  // controlled, not selected
};

// An owner that is being deleted, and one whose selector is empty, adopt and release nothing. Only
// objects that `counts` (null: all) are adopted or released.
Adoption PlanAdoption(const api::Object& owner, const api::LabelSelector& selector,
                      const OwnedIndex& index, bool (*counts)(const api::Object&) = nullptr);

// The entry in metadata.ownerReferences of what an owner controls.
api::Draft ControllerReference(const api::Object& owner, const api::KindSchema& kind);

// Strategic merge patches that make `owner` the controller of an object, or no longer its owner.
std::string AdoptPatch(const api::Object& owner, const api::KindSchema& kind,
                       const api::Object& object);
std::string ReleasePatch(const api::Object& owner, const api::Object& object);

}  // namespace drakkar::controllers
