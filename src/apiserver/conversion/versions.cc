#include "apiserver/conversion/versions.h"

#include <mutex>
#include <utility>
#include <vector>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/conversion/autoscaler_versions.h"
#include "apiserver/conversion/event_versions.h"
#include "apiserver/conversion/resource_versions.h"
#include "apiserver/custom/definition.h"
#include "apiserver/custom/json_values.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kAutoscalingGroup = "autoscaling";
constexpr std::string_view kEventsGroup = "events.k8s.io";
constexpr std::string_view kResourceGroup = "resource.k8s.io";

bool IsIn(const api::Object& object, const api::KindSchema& kind) {
  const std::string_view version = object.api_version();
  if (kind.group.empty()) return version == kind.version;
  return version.size() == kind.group.size() + 1 + kind.version.size() &&
         version.starts_with(kind.group) && version.ends_with(kind.version);
}

// What webhooks made of an object, by version. There are a handful.
struct ConvertedForms {
  std::mutex mutex;
  std::vector<std::pair<const api::KindSchema*, api::ObjectPtr>> forms;
};

ConvertedForms& FormsOf(const api::Object& object) {
  static constexpr char kTag = 0;
  const std::shared_ptr<const void> forms = object.Form(
      &kTag, []() -> std::shared_ptr<const void> { return std::make_shared<ConvertedForms>(); });
  return *const_cast<ConvertedForms*>(static_cast<const ConvertedForms*>(forms.get()));
}

// Without a webhook, the versions of a custom resource differ only in their name and in what their
// schemas keep. What is stored keeps everything.
api::TreePtr ConvertCustom(const api::TreePtr& object, const api::KindSchema& to) {
  if (to.is_api_version(object->root()["apiVersion"].str())) return object;
  // Only its webhook can do so. A caller that needs the object in this version calls it first.
  if (IsConvertedByWebhook(to)) return object;
  api::Draft draft(object);
  draft["apiVersion"] = to.api_version();
  api::TreePtr converted = draft.Freeze();
  const CustomVersion* version = FindCustomVersion(to);
  if (to.storage_version || version == nullptr) return converted;
  converted = PruneUnknown(converted, version->schema(), nullptr);
  if (!version->schema().has_defaults) return converted;
  api::Draft defaulted(converted);
  ApplyJsonDefaults(defaulted, version->schema());
  return defaulted.Freeze();
}

}  // namespace

api::TreePtr ConvertTree(const api::TreePtr& object, const api::KindSchema& to) {
  if (to.family != nullptr) return ConvertCustom(object, to);
  if (to.group == kResourceGroup) return FromHubVersion(ToHubVersion(object), to.version);
  if (to.group == kAutoscalingGroup && to.kind == "HorizontalPodAutoscaler") {
    return to.version == "v1" ? AutoscalerToV1(object) : AutoscalerToV2(object);
  }
  if (to.kind == "Event") {
    return to.group == kEventsGroup ? EventFromCore(object) : EventToCore(object);
  }
  return object;
}

api::ObjectPtr ConvertObjectTo(const api::ObjectPtr& object, const api::KindSchema& to) {
  // A Status, for example, or an object that already has this version.
  if (object->kind() != to.kind || IsIn(*object, to)) return object;
  if (to.family != nullptr && IsConvertedByWebhook(to)) {
    ConvertedForms& kept = FormsOf(*object);
    const std::lock_guard lock(kept.mutex);
    for (const auto& [version, form] : kept.forms) {
      if (version == &to) return form;
    }
    return nullptr;
  }
  return std::static_pointer_cast<const api::Object>(
      object->Form(&to, [&]() -> std::shared_ptr<const void> {
        return std::make_shared<const api::Object>(ConvertTree(object->tree(), to));
      }));
}

void KeepConverted(const api::ObjectPtr& object, const api::KindSchema& to,
                   api::ObjectPtr converted) {
  ConvertedForms& kept = FormsOf(*object);
  const std::lock_guard lock(kept.mutex);
  for (const auto& [version, form] : kept.forms) {
    if (version == &to) return;
  }
  kept.forms.emplace_back(&to, std::move(converted));
}

api::ObjectPtr WithStoredDefaults(const api::ObjectPtr& object, const api::KindSchema& stored) {
  const CustomVersion* version = stored.family == nullptr ? nullptr : FindCustomVersion(stored);
  if (version == nullptr || !version->schema().has_defaults || !IsIn(*object, stored)) {
    return object;
  }
  api::Draft defaulted(object->tree());
  ApplyJsonDefaults(defaulted, version->schema());
  const api::TreePtr tree = defaulted.Freeze();
  if (api::Equal(tree->root(), object->root())) return object;
  return std::make_shared<const api::Object>(tree);
}

std::string StoredField(const api::KindSchema& kind, std::string_view field) {
  if (kind.group != kEventsGroup) return std::string(field);
  const std::size_t end = std::min(field.find('.'), field.size());
  return StrCat(CoreEventField(field.substr(0, end)), field.substr(end));
}

}  // namespace drakkar::apiserver
