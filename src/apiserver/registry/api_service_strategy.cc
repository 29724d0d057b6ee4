#include "apiserver/registry/api_service_strategy.h"

#include "api/meta/time.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/metadata.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::Value;

constexpr std::int64_t kMaxGroupPriority = 20'000;
constexpr std::int64_t kMaxVersionPriority = 1'000;

void CheckService(Value spec, FieldErrors& errors) {
  const Value service = spec["service"];
  const bool insecure = spec["insecureSkipTLSVerify"].boolean();
  const std::size_t bundle = spec["caBundle"].str().size();
  if (!service.has_value()) {
    if (bundle > 0) {
      errors.push_back(Invalid("spec.caBundle", StrCat(bundle * 3 / 4, " bytes"),
                               "local APIServices may not have a caBundle"));
    }
    if (insecure) {
      errors.push_back(Invalid("spec.insecureSkipTLSVerify", true,
                               "local APIServices may not have insecureSkipTLSVerify"));
    }
    return;
  }
  if (service["namespace"].str().empty()) errors.push_back(Required("spec.service.namespace"));
  if (service["name"].str().empty()) errors.push_back(Required("spec.service.name"));
  const std::int64_t port = service["port"].integer(443);
  if (port < 1 || port > 65535) {
    errors.push_back(Invalid("spec.service.port", port,
                             "port is not valid: must be between 1 and 65535, inclusive"));
  }
  if (insecure && bundle > 0) {
    errors.push_back(
        Invalid("spec.insecureSkipTLSVerify", true, "may not be true if caBundle is present"));
  }
}

}  // namespace

void ApiServiceStrategy::PrepareForCreate(api::Draft& object,
                                          const StrategyContext& context) const {
  if (const api::Draft* spec = object.Find("spec"); spec != nullptr && spec->Has("service")) return;
  object["status"]["conditions"] =
      api::Draft::Array({api::Draft({{"type", "Available"},
                                     {"status", "True"},
                                     {"lastTransitionTime", api::FormatTime(context.clock.Now())},
                                     {"reason", "Local"},
                                     {"message", "Local APIServices are always available"}})});
}

api::FieldErrors ApiServiceStrategy::Validate(Value object, const StrategyContext&) const {
  FieldErrors errors;
  const Value spec = object["spec"];
  const std::string_view group = spec["group"].str();
  const std::string_view version = spec["version"].str();
  const std::string_view name = object["metadata"]["name"].str();
  if (const std::string wanted = StrCat(version, ".", group); name != wanted) {
    errors.push_back(Invalid("metadata.name", name,
                             StrCat("must be `spec.version+\".\"+spec.group`: ", Quote(wanted))));
  }
  if (group.empty() && version != "v1") {
    errors.push_back(
        Required("spec.group", "only v1 may have an empty group and it better be legacy kube"));
  }
  if (!group.empty()) AddProblems(errors, "spec.group", group, api::CheckDnsSubdomain(group));
  AddProblems(errors, "spec.version", version, api::CheckDns1035Label(version));
  if (const std::int64_t priority = spec["groupPriorityMinimum"].integer();
      priority <= 0 || priority > kMaxGroupPriority) {
    errors.push_back(
        Invalid("spec.groupPriorityMinimum", priority, "must be positive and less than 20000"));
  }
  if (const std::int64_t priority = spec["versionPriority"].integer();
      priority <= 0 || priority > kMaxVersionPriority) {
    errors.push_back(
        Invalid("spec.versionPriority", priority, "must be positive and less than 1000"));
  }
  CheckService(spec, errors);
  return errors;
}

api::FieldErrors ApiServiceStrategy::ValidateUpdate(Value object, Value,
                                                    std::string_view subresource,
                                                    const StrategyContext& context) const {
  if (subresource != "status") return Validate(object, context);
  FieldErrors errors;
  std::size_t index = 0;
  for (const Value each : object["status"]["conditions"].elements()) {
    const std::string path = StrCat("status.conditions[", index++, "].status");
    const std::string_view status = each["status"].str();
    if (status != "True" && status != "False" && status != "Unknown") {
      errors.push_back(NotSupported(path, status, {"True", "False", "Unknown"}));
    }
  }
  return errors;
}

api::Problems ApiServiceStrategy::CheckName(const api::KindSchema&, std::string_view name,
                                            bool prefix) const {
  return PathSegmentProblems(name, prefix);
}

}  // namespace drakkar::apiserver
