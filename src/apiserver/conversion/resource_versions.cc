#include "apiserver/conversion/resource_versions.h"

#include <string>

#include "apiserver/conversion/draft_walk.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

constexpr std::string_view kGroupPrefix = "resource.k8s.io/";
// Fields that are in the request itself in v1beta1 and in "exactly" elsewhere.
constexpr std::string_view kRequestFields[] = {
    "deviceClassName", "selectors",   "allocationMode", "count",
    "adminAccess",     "tolerations", "capacity",       "derivedAttributes"};
constexpr std::string_view kDeviceName = "name";

bool IsRequestField(std::string_view name) {
  for (const std::string_view field : kRequestFields) {
    if (field == name) return true;
  }
  return false;
}

// Strings and numbers that equal their zero value: v1beta1 always writes some of them.
bool IsZero(const Draft& value) {
  switch (value.kind()) {
    case api::ValueKind::kString:
      return value.str().empty();
    case api::ValueKind::kInt:
      return value.integer() == 0;
    case api::ValueKind::kArray:
      return value.size() == 0;
    default:
      return !value.has_value();
  }
}

// Moves all fields but the name into `wrapper`: {name, a, b} -> {name, wrapper: {a, b}}.
void Wrap(Draft& item, api::FieldName wrapper, bool (*belongs_inside)(std::string_view name),
          bool even_if_empty) {
  Draft outer = Draft::Object();
  Draft inner = Draft::Object();
  bool any = false;
  for (auto& [key, member] : item.MutableMembers()) {
    if (!member.has_value()) continue;
    if (belongs_inside(key->view())) {
      any = any || !IsZero(member);
      inner.Entry(*key) = std::move(member);
    } else {
      outer.Entry(*key) = std::move(member);
    }
  }
  if (any || even_if_empty) outer[wrapper] = std::move(inner);
  item = std::move(outer);
}

void Unwrap(Draft& item, api::FieldName wrapper) {
  Draft* found = item.Find(wrapper);
  if (found == nullptr) return;
  Draft inner = std::move(*found);
  item.Remove(wrapper);
  if (!inner.is_object()) return;
  for (auto& [key, member] : inner.MutableMembers()) {
    item.Entry(*key) = std::move(member);
  }
}

bool IsDeviceField(std::string_view name) {
  return name != kDeviceName;
}

void ClaimToHub(Draft& spec) {
  if (Draft* devices = FindObject(spec, "devices")) {
    ForEach(*devices, "requests",
            [](Draft& request) { Wrap(request, "exactly", IsRequestField, false); });
  }
}

void ClaimFromHub(Draft& spec) {
  if (Draft* devices = FindObject(spec, "devices")) {
    ForEach(*devices, "requests", [](Draft& request) { Unwrap(request, "exactly"); });
  }
}

void SliceToHub(Draft& spec) {
  // These are plain values, so an unset one cannot be told from the zero value.
  if (Draft* name = spec.Find("nodeName"); name != nullptr && name->str().empty()) {
    spec.Remove("nodeName");
  }
  if (Draft* all = spec.Find("allNodes"); all != nullptr && !all->boolean()) {
    spec.Remove("allNodes");
  }
  ForEach(spec, "devices", [](Draft& device) { Unwrap(device, "basic"); });
}

void SliceFromHub(Draft& spec) {
  SliceToHub(spec);
  ForEach(spec, "devices", [](Draft& device) { Wrap(device, "basic", IsDeviceField, true); });
}

// Rewrites what is different in v1beta1.
void Rewrite(Draft& object, std::string_view kind, bool to_hub) {
  Draft* spec = FindObject(object, "spec");
  if (spec == nullptr) return;
  if (kind == "ResourceClaimTemplate") spec = FindObject(*spec, "spec");
  if (spec == nullptr) return;
  if (kind == "ResourceSlice") {
    to_hub ? SliceToHub(*spec) : SliceFromHub(*spec);
  } else if (kind == "ResourceClaim" || kind == "ResourceClaimTemplate") {
    to_hub ? ClaimToHub(*spec) : ClaimFromHub(*spec);
  }
}

bool HasHubVersion(std::string_view kind) {
  return !kind.starts_with("ResourcePoolStatusRequest");
}

std::string_view VersionOf(Value object) {
  const std::string_view api_version = object["apiVersion"].str();
  return api_version.starts_with(kGroupPrefix) ? api_version.substr(kGroupPrefix.size())
                                               : std::string_view();
}

}  // namespace

api::TreePtr ToHubVersion(const api::TreePtr& object) {
  const std::string_view version = VersionOf(object->root());
  const std::string_view kind = object->root()["kind"].str();
  if (version.empty() || version == "v1" || !HasHubVersion(kind)) return object;
  Draft draft(object);
  draft["apiVersion"] = StrCat(kGroupPrefix, "v1");
  if (version == "v1beta1") Rewrite(draft, kind, true);
  return draft.Freeze();
}

api::TreePtr FromHubVersion(const api::TreePtr& object, std::string_view version) {
  const std::string_view kind = object->root()["kind"].str();
  if (VersionOf(object->root()).empty() || VersionOf(object->root()) == version ||
      !HasHubVersion(kind)) {
    return object;
  }
  Draft draft(object);
  draft["apiVersion"] = StrCat(kGroupPrefix, version);
  if (version == "v1beta1") Rewrite(draft, kind, false);
  return draft.Freeze();
}

}  // namespace drakkar::apiserver
