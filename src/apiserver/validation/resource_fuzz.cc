// Whatever a client sends as an object of resource.k8s.io: reading, defaulting, converting and
// checking it never crashes, and converting back gives the same object.
#include <cstdint>
#include <string_view>

#include "api/codec/object_reader.h"
#include "api/scheme/scheme.h"
#include "apiserver/conversion/resource_defaults.h"
#include "apiserver/conversion/resource_versions.h"
#include "apiserver/validation/claim_template.h"
#include "apiserver/validation/declared_rules.h"
#include "apiserver/validation/device_class.h"
#include "apiserver/validation/device_taint_rule.h"
#include "apiserver/validation/resource_claim.h"
#include "apiserver/validation/resource_slice.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

void CheckAll(api::Value object, api::Value before, const FeatureGates& gates) {
  const std::string_view kind = object["kind"].str();
  if (kind == "ResourceSlice") {
    CheckResourceSlice(object, before, gates);
    DeclaredForResourceSlice(object, before, gates);
  } else if (kind == "ResourceClaim") {
    CheckResourceClaim(object, gates);
    CheckResourceClaimStatus(object, before, gates);
    DeclaredForResourceClaim(object, before);
  } else if (kind == "ResourceClaimTemplate") {
    CheckClaimTemplate(object, gates);
    DeclaredForClaimTemplate(object, before);
  } else if (kind == "DeviceClass") {
    CheckDeviceClass(object, before, gates);
    DeclaredForDeviceClass(object, before);
  } else if (kind == "DeviceTaintRule") {
    CheckDeviceTaintRule(object, before);
    CheckDeviceTaintRuleStatus(object);
    DeclaredForDeviceTaintRule(object, before);
  }
}

}  // namespace
}  // namespace drakkar::apiserver

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  using namespace drakkar::apiserver;
  static const FeatureGates gates;
  if (size < 2) return 0;
  constexpr std::string_view kKinds[] = {"ResourceSlice", "ResourceClaim", "ResourceClaimTemplate",
                                         "DeviceClass", "DeviceTaintRule"};
  const std::string_view kind = kKinds[data[0] % std::size(kKinds)];
  const api::KindSchema* schema = api::FindKind("resource.k8s.io", "v1", kind);
  const auto read =
      api::ReadObject({reinterpret_cast<const char*>(data) + 1, size - 1}, *schema->schema,
                      {.strictness = api::Strictness::kIgnore});
  if (!read.ok()) return 0;
  api::Draft draft(read->tree);
  draft["apiVersion"] = "resource.k8s.io/v1";
  draft["kind"] = kind;
  SetResourceDefaults(draft, "v1", WallTime{});
  const api::TreePtr object = draft.Freeze();
  CheckAll(object->root(), api::Value(), gates);
  CheckAll(object->root(), read->tree->root(), gates);
  ToHubVersion(FromHubVersion(object, "v1beta1"));
  return 0;
}
