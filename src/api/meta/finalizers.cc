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
  for (std::size_t i = finalizers->size(); i-- > 0;) {
    if (finalizers->at(i).str() == finalizer) finalizers->RemoveAt(i);
  }
  if (finalizers->size() == 0) metadata.Remove("finalizers");
}

}  // namespace drakkar::api
