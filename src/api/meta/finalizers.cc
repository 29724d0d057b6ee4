#include "api/meta/finalizers.h"

namespace drakkar::api {

bool HasFinalizer(Value metadata, std::string_view finalizer) {
  for (Value each : metadata["finalizers"].elements()) {
    if (each.str() == finalizer) return true;
  }
  return false;
}

bool HasFinalizerOtherThan(Value metadata, std::string_view finalizer) {
  for (Value each : metadata["finalizers"].elements()) {
    if (each.str() != finalizer) return true;
  }
  return false;
}

void AddFinalizer(Draft& metadata, std::string_view finalizer) {
  metadata["finalizers"].Append(finalizer);
}

void RemoveFinalizer(Draft& metadata, std::string_view finalizer) {
  Draft* finalizers = metadata.Find("finalizers");
  if (finalizers == nullptr) return;
  std::erase_if(finalizers->MutableElements(),
                [&](const Draft& each) { return each.str() == finalizer; });
  if (finalizers->size() == 0) metadata.Remove("finalizers");
}

}  // namespace drakkar::api
