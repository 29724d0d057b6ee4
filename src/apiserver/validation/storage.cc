#include "apiserver/validation/storage.h"

#include <map>
#include <set>

#include "api/meta/quantity.h"
#include "api/schema/schema.h"
#include "api/tree/draft.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/schema_rules.h"
#include "apiserver/validation/semantic_equal.h"
#include "apiserver/validation/value_rules.h"
#include "base/exec/work_budget.h"
#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::FieldPath;
using api::Value;

constexpr std::string_view kFieldIsImmutable = "field is immutable";

bool Same(Value a, Value b, std::string_view structure) {
  const api::StructSchema* schema = api::FindStruct(StrCat("io.k8s.api.", structure));
  CHECK(schema != nullptr);
  return SemanticEqual(a, b, *schema);
}

// The driver or plugin that provides volumes.
void CheckProvisioner(FieldErrors& errors, const FieldPath& path, std::string_view name) {
  const std::string lower = ToLower(name);
  AddProblems(errors, path, lower, api::CheckLabelKey(lower));
}

void CheckParameters(FieldErrors& errors, const FieldPath& path, Value parameters) {
  constexpr std::size_t kMaxCount = 512;
  constexpr std::size_t kMaxBytes = 256 * 1024;
  if (parameters.size() > kMaxCount) {
    errors.push_back(api::FieldError::TooLong(path, kMaxCount));
    return;
  }
  std::size_t bytes = 0;
  for (const auto& [key, name, value] : parameters.members()) {
    if (name.empty()) errors.push_back(Invalid(path, name, "field can not be empty."));
    bytes += name.size() + value.str().size();
  }
  if (bytes > kMaxBytes) errors.push_back(api::FieldError::TooLong(path, kMaxBytes));
}

// Terms are compared by their keys and sets of values.
void CheckTopologies(FieldErrors& errors, const FieldPath& path, Value terms) {
  using Term = std::map<std::string_view, std::set<std::string_view>>;
  std::set<Term> seen;
  std::size_t index = 0;
  for (const Value term : terms.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath list = path.Index(index++).Child("matchLabelExpressions");
    Term keys;
    std::size_t place = 0;
    for (const Value expression : term["matchLabelExpressions"].elements()) {
      if (WorkBudget::IsExceeded()) return;
      const FieldPath at = list.Index(place++);
      const std::string_view key = expression["key"].str();
      std::set<std::string_view> values;
      if (expression["values"].empty()) errors.push_back(Required(at.Child("values")));
      std::size_t number = 0;
      for (const Value value : expression["values"].elements()) {
        const FieldPath value_path = at.Child("values").Index(number++);
        if (!values.insert(value.str()).second) {
          errors.push_back(Duplicate(value_path, value.str()));
        }
      }
      AddProblems(errors, at.Child("key"), key, api::CheckLabelKey(key));
      if (!keys.insert_or_assign(key, std::move(values)).second) {
        errors.push_back(Duplicate(at.Child("key"), key));
      }
    }
    if (!seen.insert(std::move(keys)).second) errors.push_back(Duplicate(list, ""));
  }
}

void CheckTokenRequests(FieldErrors& errors, const FieldPath& path, Value requests) {
  constexpr std::int64_t kMinSeconds = 600;
  constexpr std::int64_t kMaxSeconds = std::int64_t{1} << 32;
  std::set<std::string_view> audiences;
  std::size_t index = 0;
  for (const Value request : requests.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    const std::string_view audience = request["audience"].str();
    if (!audiences.insert(audience).second) {
      errors.push_back(Duplicate(at.Child("audience"), audience));
      continue;
    }
    const Value seconds = request["expirationSeconds"];
    if (!seconds.has_value()) continue;
    const FieldPath seconds_path = at.Child("expirationSeconds");
    if (seconds.integer() < kMinSeconds) {
      errors.push_back(Invalid(seconds_path, seconds.integer(),
                               "may not specify a duration less than 10 minutes"));
    } else if (seconds.integer() > kMaxSeconds) {
      errors.push_back(Invalid(seconds_path, seconds.integer(),
                               "may not specify a duration larger than 2^32 seconds"));
    }
  }
}

void CheckVolumeError(FieldErrors& errors, const FieldPath& path, Value error) {
  constexpr std::size_t kMaxMessageBytes = 1'024;
  constexpr std::int64_t kMaxCode = 2'147'483'647;
  if (error["message"].str().size() > kMaxMessageBytes) {
    errors.push_back(api::FieldError::TooLong(path.Child("message"), kMaxMessageBytes));
  }
  const Value code = error["errorCode"];
  if (code.has_value()) CheckInRange(errors, path.Child("errorCode"), code.integer(), 0, kMaxCode);
}

}  // namespace

FieldErrors ValidateStorageClass(Value storage_class) {
  FieldErrors errors;
  const std::string_view provisioner = storage_class["provisioner"].str();
  if (!provisioner.empty()) CheckProvisioner(errors, FieldPath("provisioner"), provisioner);
  CheckParameters(errors, FieldPath("parameters"), storage_class["parameters"]);
  // Volumes are made for one claim, so they are not scrubbed for others.
  if (storage_class["reclaimPolicy"].str() == "Recycle") {
    errors.push_back(NotSupported(FieldPath("reclaimPolicy"), "Recycle", {"Delete", "Retain"}));
  }
  CheckTopologies(errors, FieldPath("allowedTopologies"), storage_class["allowedTopologies"]);
  return errors;
}

FieldErrors ValidateStorageClassUpdate(Value storage_class, Value before) {
  FieldErrors errors;
  for (const api::FieldName field :
       api::FieldNames{"parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"}) {
    const Value now = storage_class[field];
    const Value old = before[field];
    if (api::Equal(now, old) || (now.empty() && old.empty() && !now.is_string())) continue;
    errors.push_back(Invalid(FieldPath(field.view()), now, kFieldIsImmutable));
  }
  return errors;
}

FieldErrors ValidateCsiDriver(Value driver) {
  constexpr std::int64_t kMinPeriodSeconds = 10;
  FieldErrors errors;
  const FieldPath path("spec");
  const Value spec = driver["spec"];
  const Value policy = spec["fsGroupPolicy"];
  if (policy.has_value()) {
    CheckOneOf(errors, path.Child("fsGroupPolicy"), policy.str(),
               {"ReadWriteOnceWithFSType", "File", "None"});
  }
  CheckTokenRequests(errors, path.Child("tokenRequests"), spec["tokenRequests"]);
  for (const Value mode : spec["volumeLifecycleModes"].elements()) {
    if (WorkBudget::IsExceeded()) return errors;
    CheckOneOf(errors, path.Child("volumeLifecycleModes"), mode.str(), {"Persistent", "Ephemeral"});
  }
  const Value period = spec["nodeAllocatableUpdatePeriodSeconds"];
  if (period.has_value() && period.integer() < kMinPeriodSeconds) {
    errors.push_back(Invalid(path.Child("nodeAllocatableUpdatePeriodSeconds"), period.integer(),
                             "must be greater than or equal to 10 seconds"));
  }
  const Value in_secrets = spec["serviceAccountTokenInSecrets"];
  if (in_secrets.has_value() && spec["tokenRequests"].empty()) {
    errors.push_back(Invalid(path.Child("serviceAccountTokenInSecrets"), in_secrets,
                             "serviceAccountTokenInSecrets is set but no tokenRequests are "
                             "specified"));
  }
  return errors;
}

FieldErrors ValidateCsiDriverUpdate(Value driver, Value before) {
  FieldErrors errors = ValidateCsiDriver(driver);
  const Value spec = driver["spec"];
  const Value old = before["spec"];
  if (spec["attachRequired"].boolean() != old["attachRequired"].boolean()) {
    errors.push_back(Invalid("spec.attachedRequired", spec["attachRequired"], kFieldIsImmutable));
  }
  if (!api::Equal(spec["volumeLifecycleModes"], old["volumeLifecycleModes"])) {
    errors.push_back(
        Invalid("spec.volumeLifecycleModes", spec["volumeLifecycleModes"], kFieldIsImmutable));
  }
  return errors;
}

FieldErrors ValidateCsiNode(Value node, Value before) {
  constexpr std::size_t kMaxIdBytes = 256;
  FieldErrors errors;
  const FieldPath list = FieldPath("spec").Child("drivers");
  std::map<std::string_view, Value> old_drivers;
  for (const Value old : before["spec"]["drivers"].elements()) {
    old_drivers[old["name"].str()] = old;
  }
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (const Value driver : node["spec"]["drivers"].elements()) {
    if (WorkBudget::IsExceeded()) return errors;
    const FieldPath at = list.Index(index++);
    const std::string_view name = driver["name"].str();
    CheckCsiDriverName(errors, at.Child("name"), name);
    const std::string_view id = driver["nodeID"].str();
    RequireText(errors, at.Child("nodeID"), id);
    if (id.size() > kMaxIdBytes) {
      errors.push_back(
          Invalid(at.Child("nodeID"), id, StrCat("must be ", kMaxIdBytes, " characters or less")));
    }
    CheckNotNegative(errors, at.Child("allocatable").Child("count"),
                     driver["allocatable"]["count"].integer());
    if (!names.insert(name).second) errors.push_back(Duplicate(at.Child("name"), name));
    std::set<std::string_view> keys;
    for (const Value key : driver["topologyKeys"].elements()) {
      if (WorkBudget::IsExceeded()) return errors;
      if (key.str().empty()) errors.push_back(Required(at));
      if (!keys.insert(key.str()).second) errors.push_back(Duplicate(at, key.str()));
      AddProblems(errors, at, key.str(), api::CheckLabelKey(key.str()));
    }
    const auto old = old_drivers.find(name);
    if (old == old_drivers.end()) continue;
    api::Draft fixed(driver);
    api::Draft fixed_before(old->second);
    fixed.Remove("allocatable");
    fixed_before.Remove("allocatable");
    if (!Same(fixed.Freeze()->root(), fixed_before.Freeze()->root(), "storage.v1.CSINodeDriver")) {
      errors.push_back(Invalid(list, driver, kFieldIsImmutable));
    }
  }
  return errors;
}

FieldErrors ValidateStorageCapacity(Value capacity, Value before) {
  FieldErrors errors;
  const Value topology = capacity["nodeTopology"];
  const std::string_view name = capacity["storageClassName"].str();
  if (!before.exists()) {
    if (topology.has_value()) CheckLabelSelector(errors, FieldPath("nodeTopology"), topology);
    CheckDnsSubdomain(errors, FieldPath("storageClassName"), name);
    const auto amount = api::Quantity::Parse(capacity["capacity"].str());
    if (capacity["capacity"].has_value() && amount.ok() && amount->Sign() < 0) {
      errors.push_back(
          Invalid("capacity", amount->ToString(), "must be greater than or equal to 0"));
    }
    return errors;
  }
  if (!api::Equal(topology, before["nodeTopology"])) {
    errors.push_back(Invalid("nodeTopology", topology, kFieldIsImmutable));
  }
  if (name != before["storageClassName"].str()) {
    errors.push_back(Invalid("storageClassName", name, kFieldIsImmutable));
  }
  return errors;
}

FieldErrors ValidateVolumeAttachment(Value attachment, Value before) {
  constexpr std::size_t kMaxMetadataBytes = 256 * 1024;
  FieldErrors errors;
  const FieldPath path("spec");
  const Value spec = attachment["spec"];
  CheckCsiDriverName(errors, path.Child("attacher"), spec["attacher"].str());
  const Value volume = spec["source"]["persistentVolumeName"];
  const bool is_inline = spec["source"]["inlineVolumeSpec"].has_value();
  const FieldPath source = path.Child("source");
  constexpr std::string_view kOne =
      "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  if (!volume.has_value() && !is_inline) {
    errors.push_back(Required(source, kOne));
  } else if (volume.has_value() && is_inline) {
    errors.push_back(Forbidden(source, kOne));
  } else if (volume.has_value() && volume.str().empty()) {
    errors.push_back(Required(source.Child("persistentVolumeName"),
                              "must specify non empty persistentVolumeName"));
  }
  if (volume.has_value()) {
    CheckDnsSubdomain(errors, source.Child("persistentVolumeName"), volume.str());
  }
  CheckDnsSubdomain(errors, path.Child("nodeName"), spec["nodeName"].str());
  const Value status = attachment["status"];
  std::size_t bytes = 0;
  for (const auto& [key, name, value] : status["attachmentMetadata"].members()) {
    bytes += name.size() + value.str().size();
  }
  if (bytes > kMaxMetadataBytes) {
    errors.push_back(
        api::FieldError::TooLong(FieldPath("status.attachmentMetadata"), kMaxMetadataBytes));
  }
  CheckVolumeError(errors, FieldPath("status.attachError"), status["attachError"]);
  CheckVolumeError(errors, FieldPath("status.detachError"), status["detachError"]);
  if (before.exists() && !Same(spec, before["spec"], "storage.v1.VolumeAttachmentSpec")) {
    errors.push_back(Invalid("spec", spec, kFieldIsImmutable));
  }
  return errors;
}

FieldErrors ValidateVolumeAttributesClass(Value attributes_class, Value before) {
  FieldErrors errors;
  const std::string_view driver = attributes_class["driverName"].str();
  const Value parameters = attributes_class["parameters"];
  if (before.exists()) {
    if (driver != before["driverName"].str()) {
      errors.push_back(Forbidden("driverName", "updates to driverName are forbidden."));
    }
    if (!api::Equal(parameters, before["parameters"])) {
      errors.push_back(Forbidden("parameters", "updates to parameters are forbidden."));
    }
  }
  if (driver.empty()) {
    errors.push_back(Required("driverName"));
  } else {
    CheckProvisioner(errors, FieldPath("driverName"), driver);
  }
  CheckParameters(errors, FieldPath("parameters"), parameters);
  if (parameters.empty()) {
    errors.push_back(Required("parameters", "must contain at least one key/value pair"));
  }
  return errors;
}

}  // namespace drakkar::apiserver
