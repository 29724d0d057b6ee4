// Whatever a client sends as an object of resource.k8s.io, in any version and format: reading,
// defaulting, converting, checking and writing it never crashes.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/codec/object_reader.h"
#include "api/codec/protobuf_reader.h"
#include "api/codec/protobuf_writer.h"
#include "api/codec/yaml_reader.h"
#include "api/scheme/scheme.h"
#include "apiserver/conversion/resource_defaults.h"
#include "apiserver/conversion/versions.h"
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

namespace {

using namespace drakkar;

// Decodes the bytes in the given format; null if that fails.
api::TreePtr Decode(int format, std::string_view bytes, const api::StructSchema& schema) {
  const api::ObjectReadOptions options{.strictness = api::Strictness::kIgnore};
  Result<api::ObjectReadResult> read = [&]() -> Result<api::ObjectReadResult> {
    if (format == 0) return api::ReadObject(bytes, schema, options);
    if (format == 1) {
      ASSIGN_OR_RETURN(const std::vector<api::TreePtr> documents, api::ParseYaml(bytes));
      if (documents.size() != 1) return InvalidArgument("not one document");
      return api::ConvertObject(documents.front()->root(), schema, options);
    }
    ASSIGN_OR_RETURN(const api::TreePtr message, api::ReadProtobuf(bytes, schema));
    return api::ConvertObject(message->root(), schema, options);
  }();
  return read.ok() ? read->tree : nullptr;
}

}  // namespace

// The first byte selects the kind, the second the version and format. The rest is the object.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::apiserver;
  static const FeatureGates defaults;
  static const FeatureGates everything = [] {
    FeatureGates all;
    for (int i = 0; i < static_cast<int>(Gate::kCount); ++i) {
      all = all.With(static_cast<Gate>(i), true);
    }
    return all;
  }();
  if (size < 3) return 0;
  constexpr std::string_view kKinds[] = {"ResourceSlice", "ResourceClaim", "ResourceClaimTemplate",
                                         "DeviceClass", "DeviceTaintRule"};
  constexpr std::string_view kVersions[] = {"v1", "v1beta2", "v1beta1", "v1alpha3"};
  const std::string_view name = kKinds[data[0] % std::size(kKinds)];
  const api::KindSchema* kind =
      api::FindKind("resource.k8s.io", kVersions[data[1] % std::size(kVersions)], name);
  if (kind == nullptr) return 0;
  const api::TreePtr read =
      Decode(data[1] / 4 % 3, {reinterpret_cast<const char*>(data) + 2, size - 2}, *kind->schema);
  if (read == nullptr) return 0;
  api::Draft draft(read);
  draft["apiVersion"] = std::string("resource.k8s.io/") + std::string(kind->version);
  draft["kind"] = name;
  SetResourceDefaults(draft, kind->version, WallTime{});
  const api::KindSchema* hub = api::FindKind("resource.k8s.io", "v1", name);
  const api::TreePtr object = ConvertTree(draft.Freeze(), *hub);
  for (const FeatureGates* gates : {&defaults, &everything}) {
    CheckAll(object->root(), api::Value(), *gates);
    CheckAll(object->root(), read->root(), *gates);
  }
  // The object can be converted to every version, and its protobuf encoding can be read back.
  for (std::string_view version : kVersions) {
    const api::KindSchema* other = api::FindKind("resource.k8s.io", version, name);
    if (other == nullptr) continue;
    const api::TreePtr converted = ConvertTree(object, *other);
    if (!api::ReadProtobuf(api::WriteProtobuf(converted->root(), *other->schema), *other->schema)
             .ok()) {
      std::abort();
    }
    ConvertTree(converted, *hub);
  }
  return 0;
}
