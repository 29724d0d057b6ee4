#include "apiserver/validation/persistent_volume.h"

#include <algorithm>

#include "api/meta/quantity.h"
#include "api/schema/schema.h"
#include "api/tree/draft.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/metadata.h"
#include "apiserver/validation/resource_rules.h"
#include "apiserver/validation/schema_rules.h"
#include "apiserver/validation/semantic_equal.h"
#include "apiserver/validation/value_rules.h"
#include "apiserver/validation/volume_source.h"
#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::FieldPath;
using api::Quantity;
using api::Value;

constexpr std::string_view kClassAnnotation = "volume.beta.kubernetes.io/storage-class";

bool Same(Value a, Value b, std::string_view structure) {
  const api::StructSchema* schema = api::FindStruct(StrCat("io.k8s.api.core.v1.", structure));
  CHECK(schema != nullptr);
  return SemanticEqual(a, b, *schema);
}

bool SameText(Value a, Value b) {
  return a.has_value() == b.has_value() && a.str() == b.str();
}

void CheckAccessModes(FieldErrors& errors, const FieldPath& path, Value modes,
                      std::string_view required) {
  if (modes.empty()) errors.push_back(Required(path, required));
  bool single = false;
  bool other = false;
  for (const Value mode : modes.elements()) {
    const std::string_view text = mode.str();
    const bool known = text == "ReadWriteOnce" || text == "ReadOnlyMany" || text == "ReadWriteMany";
    single = single || text == "ReadWriteOncePod";
    other = other || known;
    CheckOneOf(errors, path, text,
               {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"});
  }
  if (single && other) {
    errors.push_back(Forbidden(path, "may not use ReadWriteOncePod with other access modes"));
  }
}

void CheckVolumeMode(FieldErrors& errors, const FieldPath& path, Value mode) {
  if (mode.has_value()) CheckOneOf(errors, path, mode.str(), {"Block", "Filesystem"});
}

void CheckPositive(FieldErrors& errors, const FieldPath& path, Value value) {
  const auto quantity = Quantity::Parse(value.str());
  if (!quantity.ok() || quantity->Sign() > 0) return;
  errors.push_back(Invalid(path, quantity->ToString(), "must be greater than zero"));
}

// dataSource and dataSourceRef.
void CheckSource(FieldErrors& errors, const FieldPath& path, Value source) {
  RequireText(errors, path.Child("name"), source["name"].str());
  RequireText(errors, path.Child("kind"), source["kind"].str());
  const std::string_view group = source["apiGroup"].str();
  if (!group.empty()) {
    CheckDnsSubdomain(errors, path.Child("apiGroup"), group);
  } else if (source["kind"].str() != "PersistentVolumeClaim") {
    errors.push_back(
        Invalid(path, source["kind"].str(),
                "must be 'PersistentVolumeClaim' when referencing the default apiGroup"));
  }
  if (const std::string_view home = source["namespace"].str(); !home.empty()) {
    CheckDnsLabel(errors, path.Child("namespace"), home);
  }
}

void CheckSources(FieldErrors& errors, const FieldPath& path, Value spec) {
  const Value source = spec["dataSource"];
  const Value reference = spec["dataSourceRef"];
  if (source.has_value()) CheckSource(errors, path.Child("dataSource"), source);
  if (reference.has_value()) CheckSource(errors, path.Child("dataSourceRef"), reference);
  if (!source.has_value() || !reference.has_value()) return;
  const auto refuse = [&](std::string_view why) {
    // The value that Kubernetes shows is a pointer to the path.
    errors.push_back(Invalid(path, api::BadValue::Literal("{}"), why));
  };
  if (!reference["namespace"].str().empty()) {
    refuse("may not be specified when dataSourceRef.namespace is specified");
  } else if (!SameText(source["apiGroup"], reference["apiGroup"]) ||
             source["kind"].str() != reference["kind"].str() ||
             source["name"].str() != reference["name"].str()) {
    refuse("must match dataSourceRef");
  }
}

void CheckCapacity(FieldErrors& errors, const FieldPath& path, Value capacity) {
  if (capacity.empty()) errors.push_back(Required(path));
  if (!capacity.Entry("storage").exists() || capacity.size() > 1) {
    errors.push_back(NotSupported(path, capacity, {"storage"}));
  }
  for (const auto& [key, name, value] : capacity.members()) {
    const auto quantity = Quantity::Parse(value.str());
    if (!quantity.ok()) continue;
    if (quantity->Value() < 0) {
      errors.push_back(
          Invalid(path.Key(name), quantity->Value(), "must be a valid resource quantity"));
    }
    CheckPositive(errors, path.Key(name), value);
  }
}

// Whether the path is "/", however it is written.
bool IsRoot(std::string_view file) {
  if (!file.starts_with('/')) return false;
  std::size_t depth = 0;
  for (const std::string_view part : Split(file, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      ++depth;
    } else if (depth > 0) {
      --depth;
    }
  }
  return depth == 0;
}

// The source of a volume: all that stays the same for the volume's life. A secret that the
// controller needs to expand the volume may be added.
api::TreePtr SourceOf(Value spec, Value before) {
  api::Draft source(spec);
  for (const api::FieldName field :
       api::FieldNames{"capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy",
                       "storageClassName", "mountOptions", "volumeMode", "nodeAffinity",
                       "volumeAttributesClassName"}) {
    source.Remove(field);
  }
  api::Draft* csi = source.Find("csi");
  if (csi != nullptr && csi->is_object() && before["csi"].has_value() &&
      !before["csi"]["controllerExpandSecretRef"].has_value()) {
    csi->Remove("controllerExpandSecretRef");
  }
  return source.Freeze();
}

// The spec without what may change: the volume once, and the size and attributes of a bound claim.
api::TreePtr FixedSpec(Value spec, Value before, bool bound) {
  api::Draft fixed(spec);
  if (before["spec"]["volumeName"].str().empty()) fixed.Remove("volumeName");
  if (!before["spec"]["storageClassName"].has_value()) {
    // A claim from before the field existed may take over what its annotation says.
    const Value annotated = before["metadata"]["annotations"].Entry(kClassAnnotation);
    if (!annotated.exists() || annotated.str() == spec["storageClassName"].str()) {
      fixed.Remove("storageClassName");
    }
  }
  if (bound) {
    fixed.Remove("volumeAttributesClassName");
    if (api::Draft* resources = fixed.Find("resources")) {
      if (api::Draft* requests = resources->Find("requests")) requests->RemoveEntry("storage");
    }
  }
  return fixed.Freeze();
}

}  // namespace

void CheckVolumeClaimSpec(FieldErrors& errors, const FieldPath& path, Value spec) {
  CheckAccessModes(errors, path.Child("accessModes"), spec["accessModes"],
                   "at least 1 access mode is required");
  if (spec["selector"].has_value()) {
    CheckLabelSelector(errors, path.Child("selector"), spec["selector"]);
  }
  const FieldPath storage = path.Child("resources").Key("storage");
  const Value size = spec["resources"]["requests"].Entry("storage");
  if (!size.exists()) {
    errors.push_back(Required(storage));
  } else {
    CheckPositive(errors, storage, size);
  }
  for (const api::FieldName field :
       api::FieldNames{"storageClassName", "volumeAttributesClassName"}) {
    const std::string_view name = spec[field].str();
    if (!name.empty()) CheckDnsSubdomain(errors, path.Child(field.view()), name);
  }
  CheckVolumeMode(errors, path.Child("volumeMode"), spec["volumeMode"]);
  CheckSources(errors, path, spec);
}

void CheckClaimTemplate(FieldErrors& errors, const FieldPath& path, Value claim) {
  const Value metadata = claim["metadata"];
  const FieldPath at = path.Child("metadata");
  Findings findings;
  CheckAnnotations(findings, at.Child("annotations"), metadata["annotations"]);
  CheckLabels(findings, at.Child("labels"), metadata["labels"]);
  errors.Append(PlainErrors(findings));
  for (const auto& [key, name, value] : metadata.members()) {
    if (name == "annotations" || name == "labels" || !value.has_value()) continue;
    if (value.is_string() ? value.str().empty() : value.is_array() && value.empty()) continue;
    // As Go spells the field, with its first letter in lower case.
    errors.push_back(Forbidden(at.Child(name == "uid" ? "uID" : name), "cannot be set"));
  }
  CheckVolumeClaimSpec(errors, path.Child("spec"), claim["spec"]);
}

FieldErrors ValidatePersistentVolume(Value volume) {
  FieldErrors errors;
  const Value spec = volume["spec"];
  const FieldPath path("spec");
  CheckAccessModes(errors, path.Child("accessModes"), spec["accessModes"], "");
  CheckCapacity(errors, path.Child("capacity"), spec["capacity"]);
  const FieldPath policy_path = path.Child("persistentVolumeReclaimPolicy");
  const std::string_view policy = spec["persistentVolumeReclaimPolicy"].str();
  if (!policy.empty()) CheckOneOf(errors, policy_path, policy, {"Delete", "Recycle", "Retain"});
  const Value required = spec["nodeAffinity"]["required"];
  if (required.has_value()) {
    Findings findings;
    CheckNodeSelector(findings, path.Child("nodeAffinity").Child("required"), required);
    errors.Append(PlainErrors(findings));
  } else if (spec["nodeAffinity"].has_value()) {
    errors.push_back(Required(path.Child("nodeAffinity").Child("required"),
                              "must specify required node constraints"));
  }
  CheckPersistentSource(errors, path, spec, volume["metadata"]["name"].str());
  if (spec["local"].has_value() && !spec["nodeAffinity"].has_value()) {
    errors.push_back(Required(path.Child("nodeAffinity"), "Local volume requires node affinity"));
  }
  if (policy == "Recycle" && IsRoot(spec["hostPath"]["path"].str())) {
    errors.push_back(Forbidden(policy_path, "may not be 'recycle' for a hostPath mount of '/'"));
  }
  const std::string_view storage_class = spec["storageClassName"].str();
  if (!storage_class.empty()) {
    CheckDnsSubdomain(errors, path.Child("storageClassName"), storage_class);
  }
  CheckVolumeMode(errors, path.Child("volumeMode"), spec["volumeMode"]);
  if (const Value attributes = spec["volumeAttributesClassName"]; attributes.has_value()) {
    const FieldPath at = path.Child("volumeAttributesClassName");
    if (attributes.str().empty()) {
      errors.push_back(Required(at, "an empty string is disallowed"));
    } else {
      CheckDnsSubdomain(errors, at, attributes.str());
    }
    if (!spec["csi"].has_value()) {
      errors.push_back(
          Required(path.Child("csi"), "has to be specified when using volumeAttributesClassName"));
    }
  }
  return errors;
}

FieldErrors ValidatePersistentVolumeUpdate(Value volume, Value before) {
  FieldErrors errors = ValidatePersistentVolume(volume);
  const Value spec = volume["spec"];
  const Value old = before["spec"];
  if (!Same(SourceOf(spec, old)->root(), SourceOf(old, old)->root(), "PersistentVolumeSpec")) {
    errors.push_back(Forbidden("spec.persistentvolumesource",
                               "spec.persistentvolumesource is immutable after creation"));
  }
  if (!SameText(spec["volumeMode"], old["volumeMode"])) {
    errors.push_back(Invalid("volumeMode", spec["volumeMode"], "field is immutable"));
  }
  if (old["nodeAffinity"].has_value() &&
      !Same(spec["nodeAffinity"], old["nodeAffinity"], "VolumeNodeAffinity")) {
    errors.push_back(Invalid("nodeAffinity", spec["nodeAffinity"],
                             "field is immutable, except for updating from beta label to GA"));
  }
  if (old["volumeAttributesClassName"].has_value() &&
      !spec["volumeAttributesClassName"].has_value()) {
    errors.push_back(Forbidden("spec.volumeAttributesClassName",
                               "update from non-nil value to nil is forbidden"));
  }
  return errors;
}

FieldErrors ValidateVolumeClaim(Value claim) {
  FieldErrors errors;
  CheckVolumeClaimSpec(errors, FieldPath("spec"), claim["spec"]);
  return errors;
}

FieldErrors ValidateVolumeClaimUpdate(Value claim, Value before) {
  FieldErrors errors = ValidateVolumeClaim(claim);
  const Value spec = claim["spec"];
  const Value old = before["spec"];
  const Value class_now = claim["metadata"]["annotations"].Entry(kClassAnnotation);
  const Value class_before = before["metadata"]["annotations"].Entry(kClassAnnotation);
  const bool takes_over = class_before.exists() && !class_now.exists() &&
                          !old["storageClassName"].has_value() &&
                          spec["storageClassName"].str() == class_before.str();
  if (!takes_over && class_now.str() != class_before.str()) {
    errors.push_back(Invalid(StrCat("metadata.annotations.", kClassAnnotation), class_now.str(),
                             "field is immutable"));
  }
  const bool bound = claim["status"]["phase"].str() == "Bound";
  if (!Same(FixedSpec(spec, before, bound)->root(), FixedSpec(old, before, bound)->root(),
            "PersistentVolumeClaimSpec")) {
    errors.push_back(Forbidden("spec",
                               "spec is immutable after creation except resources.requests and "
                               "volumeAttributesClassName for bound claims"));
  }
  const auto size_of = [](Value map) {
    const auto size = Quantity::Parse(map.Entry("storage").str());
    return size.ok() ? *size : Quantity();
  };
  const Quantity size = size_of(spec["resources"]["requests"]);
  if (size < size_of(old["resources"]["requests"]) &&
      size <= size_of(before["status"]["capacity"])) {
    // A request that could not be satisfied may be taken back, but not below what there is.
    errors.push_back(
        Forbidden("spec.resources.requests.storage", "field can not be less than status.capacity"));
  }
  if (!SameText(spec["volumeMode"], old["volumeMode"])) {
    errors.push_back(Invalid("volumeMode", spec["volumeMode"], "field is immutable"));
  }
  const Value attributes = spec["volumeAttributesClassName"];
  if (before["status"]["currentVolumeAttributesClassName"].has_value() &&
      !SameText(attributes, old["volumeAttributesClassName"]) && attributes.str().empty()) {
    errors.push_back(
        Forbidden("spec.volumeAttributesClassName",
                  StrCat("update to ", attributes.has_value() ? "empty string" : "nil",
                         " is forbidden when status.currentVolumeAttributesClassName is not nil")));
  }
  return errors;
}

FieldErrors ValidateVolumeClaimStatus(Value claim) {
  FieldErrors errors;
  const auto check_amounts = [&](api::FieldName field) {
    const FieldPath path = FieldPath("status").Child(field.view());
    for (const auto& [key, name, value] : claim["status"][field].members()) {
      const auto quantity = Quantity::Parse(value.str());
      if (!quantity.ok() || quantity->Value() >= 0) continue;
      errors.push_back(
          Invalid(path.Key(name), quantity->Value(), "must be a valid resource quantity"));
    }
  };
  check_amounts("capacity");
  check_amounts("allocatedResources");
  for (const auto& [key, name, value] : claim["status"]["allocatedResourceStatuses"].members()) {
    // The value shown is the resource, as in Kubernetes.
    constexpr std::string_view kStates[] = {"ControllerResizeInProgress",
                                            "ControllerResizeInfeasible", "NodeResizePending",
                                            "NodeResizeInProgress", "NodeResizeInfeasible"};
    if (std::ranges::find(kStates, value.str()) != std::end(kStates)) continue;
    errors.push_back(NotSupported(FieldPath("status.allocatedResourceStatuses"), name,
                                  {std::begin(kStates), std::end(kStates)}));
  }
  return errors;
}

}  // namespace drakkar::apiserver
