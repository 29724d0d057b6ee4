#pragma once

#include <vector>

#include "api/meta/label_selector.h"
#include "api/tree/draft.h"
#include "controllers/workload/owned_index.h"

namespace drakkar::api {
struct KindSchema;
}

// Controller references: an owner adopts objects that its selector matches and that have no
// controller, and releases objects that it controls but no longer selects. Pure functions.
namespace drakkar::controllers {

struct Adoption {
  std::vector<api::ObjectPtr> owned;    // controlled and selected
  std::vector<api::ObjectPtr> adopt;    // selected, without a controller
  std::vector<api::ObjectPtr> release;  // controlled, no longer selected
};

// An owner that is being deleted or has an empty selector adopts and releases nothing. Only objects
// for which `counts` returns true (null: all) are adopted or released.
Adoption PlanAdoption(const api::Object& owner, const api::LabelSelector& selector,
                      const OwnedIndex& index, bool (*counts)(const api::Object&) = nullptr);

// The entry in metadata.ownerReferences that makes the owner the controller.
api::Draft ControllerReference(const api::Object& owner, const api::KindSchema& kind);

// Strategic merge patches that make `owner` the controller of an object, or no longer its owner.
std::string AdoptPatch(const api::Object& owner, const api::KindSchema& kind,
                       const api::Object& object);
std::string ReleasePatch(const api::Object& owner, const api::Object& object);

}  // namespace drakkar::controllers
