#include "apiserver/validation/device_taint_rule.h"

#include "apiserver/validation/name_rules.h"
#include "apiserver/validation/resource_rules.h"
#include "apiserver/validation/semantic_equal.h"

namespace drakkar::apiserver {

using api::FieldError;
using api::FieldPath;
using api::Value;

Findings CheckDeviceTaintRule(Value rule, Value before) {
  Findings out;
  const FieldPath path("spec");
  const Value selector = rule["spec"]["deviceSelector"];
  const FieldPath at = path.Child("deviceSelector");
  if (const Value driver = selector["driver"]; driver.has_value()) {
    CheckDriverName(out, at.Child("driver"), driver.str());
  }
  if (const Value pool = selector["pool"]; pool.has_value()) {
    CheckPoolName(out, at.Child("pool"), pool.str());
  }
  if (const Value device = selector["device"]; device.has_value()) {
    CheckLabelName(out, at.Child("device"), device.str());
  }
  CheckTaint(out, path.Child("taint"), rule["spec"]["taint"], before["spec"]["taint"]);
  return out;
}

Findings CheckDeviceTaintRuleStatus(Value rule) {
  constexpr std::size_t kMaxConditions = 8;
  Findings out;
  const FieldPath path = FieldPath("status").Child("conditions");
  const Value conditions = rule["status"]["conditions"];
  CheckConditions(out, path, conditions);
  if (conditions.size() > kMaxConditions) {
    out.Add(FieldError::TooMany(path, conditions.size(), kMaxConditions));
  }
  return out;
}

Findings CheckPoolStatusRequestStatus(Value request, Value before) {
  Findings out;
  const FieldPath path("status");
  const Value status = request["status"];
  const Value old = before["status"];
  if (old.has_value()) {
    if (!status.has_value() || !SemanticEqual(status, old, "ResourcePoolStatusRequestStatus")) {
      out.Add(FieldError::Invalid(path, status.has_value() ? api::BadValue(status) : nullptr,
                                  "field is immutable"));
    }
    return out;
  }
  CheckConditions(out, path.Child("conditions"), status["conditions"]);
  return out;
}

}  // namespace drakkar::apiserver
