#include "apiserver/validation/claim_template.h"

#include "apiserver/validation/metadata.h"
#include "apiserver/validation/resource_claim.h"
#include "apiserver/validation/semantic_equal.h"

namespace drakkar::apiserver {

using api::FieldError;
using api::FieldPath;
using api::Value;

Findings CheckClaimTemplate(Value object, const FeatureGates& gates) {
  Findings out;
  const FieldPath path("spec");
  const Value metadata = object["spec"]["metadata"];
  CheckAnnotations(out, path.Child("metadata").Child("annotations"), metadata["annotations"]);
  CheckLabels(out, path.Child("metadata").Child("labels"), metadata["labels"]);
  for (const auto& [key, name, value] : metadata.members()) {
    if (name == "labels" || name == "annotations" || !value.has_value()) continue;
    // Kubernetes derives these paths from names in its code, where one is spelled differently.
    const std::string_view shown = name == "uid" ? "uID" : name;
    out.Add(FieldError::Forbidden(path.Child("metadata").Child(shown), "cannot be set"));
  }
  CheckClaimSpec(out, path.Child("spec"), object["spec"]["spec"], gates);
  return out;
}

Findings CheckClaimTemplateUpdate(Value object, Value before) {
  Findings out;
  if (!SemanticEqual(object["spec"], before["spec"], "ResourceClaimTemplateSpec")) {
    out.Add(FieldError::Invalid(FieldPath("spec"), object["spec"], "field is immutable"));
  }
  return out;
}

}  // namespace drakkar::apiserver
