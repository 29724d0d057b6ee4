#include "apiserver/validation/device_class.h"

#include "apiserver/validation/name_rules.h"
#include "apiserver/validation/resource_rules.h"
#include "apiserver/validation/semantic_equal.h"

namespace drakkar::apiserver {

using api::FieldError;
using api::FieldPath;
using api::Value;

Findings CheckDeviceClass(Value object, Value before, const FeatureGates& gates) {
  Findings out;
  const FieldPath path("spec");
  const Value spec = object["spec"];
  const Value old = before["spec"];
  const api::StructSchema* schema = api::FindStruct("io.k8s.api.resource.v1.DeviceClassSpec");
  // An unchanged list is accepted, even if it would be rejected now.
  auto stored = [&](api::FieldName field) {
    return before.has_value() && SemanticEqual(spec[field], old[field], schema->Find(field)->type)
               ? Stored::kYes
               : Stored::kNo;
  };
  CheckSelectors(out, path.Child("selectors"), spec["selectors"], gates, stored("selectors"));
  const Stored config_stored = stored("config");
  CheckItems(out, path.Child("config"), spec["config"], kMaxConfigs, Covered::kYes,
             [&](Value config, const FieldPath& at) {
               CheckConfiguration(out, at, config, config_stored);
             });
  if (const Value name = spec["extendedResourceName"];
      name.has_value() && !IsExtendedResourceName(name.str())) {
    out.Add(FieldError::Invalid(path.Child("extendedResourceName"), name.str(),
                                "must be a valid extended resource name"),
            "format=k8s-extended-resource-name", Covered::kYes);
  }
  return out;
}

}  // namespace drakkar::apiserver
