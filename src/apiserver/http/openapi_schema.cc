#include "apiserver/http/openapi_schema.h"

#include "apiserver/custom/definition.h"

#include <map>
#include <vector>

#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::FieldKind;
using api::MergeKind;

constexpr std::string_view kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.";
constexpr std::string_view kQuantity = "io.k8s.apimachinery.pkg.api.resource.Quantity";
constexpr std::string_view kIntOrString = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
constexpr std::string_view kRawExtension = "io.k8s.apimachinery.pkg.runtime.RawExtension";

// The kinds whose schema a struct is.
const std::multimap<const api::StructSchema*, const api::KindSchema*>& KindsByStruct() {
  static const auto index = [] {
    std::multimap<const api::StructSchema*, const api::KindSchema*> made;
    for (const api::KindSchema& kind : api::AllKinds()) made.emplace(kind.schema, &kind);
    for (const api::KindSchema& kind : api::BodyKinds()) made.emplace(kind.schema, &kind);
    return made;
  }();
  return index;
}

Draft Typed(std::string_view type, std::string_view format = "") {
  Draft schema({{"type", type}});
  if (!format.empty()) schema["format"] = format;
  return schema;
}

}  // namespace

Draft SchemaCollector::NamedReference(std::string_view name) {
  return Draft(
      {{"$ref", StrCat(version_ == OpenApiVersion::kV3 ? "#/components/schemas/" : "#/definitions/",
                       name)}});
}

Draft SchemaCollector::Reference(const api::StructSchema& structure) {
  if (started_.emplace(structure.name).second) waiting_.push_back(&structure);
  return NamedReference(structure.name);
}

void SchemaCollector::AddCustom(const CustomVersion& version) {
  const api::KindSchema& kind = version.kind();
  if (!started_.emplace(kind.schema->name).second) return;
  Draft schema(version.schema().source);
  if (version_ == OpenApiVersion::kV2 && version.schema().preserves_unknown) {
    // kubectl would take the listed properties for the only ones.
    schema = Typed("object");
  } else {
    Draft& properties = schema["properties"];
    properties["apiVersion"] = Typed("string");
    properties["apiVersion"]["description"] =
        "APIVersion defines the version of the schema that this object follows. More info: "
        "https://git.k8s.io/community/contributors/devel/sig-architecture/"
        "api-conventions.md#resources";
    properties["kind"] = Typed("string");
    properties["kind"]["description"] =
        "Kind names the type of this object, in CamelCase. More info: "
        "https://git.k8s.io/community/contributors/devel/sig-architecture/"
        "api-conventions.md#types-kinds";
    properties["metadata"] =
        Reference(*api::FindStruct("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
  }
  schema["x-kubernetes-group-version-kind"] = Draft::Array(
      {Draft({{"group", kind.group}, {"version", kind.version}, {"kind", kind.kind}})});
  schemas_.emplace(std::string(kind.schema->name), std::move(schema));
}

Draft SchemaCollector::PatchReference() {
  return Leaf(StrCat(kMeta, "Patch"));
}

// Types that are strings or numbers in JSON but have a name in Kubernetes' documents.
Draft SchemaCollector::Leaf(std::string_view name) {
  if (started_.emplace(name).second) {
    Draft schema;
    const bool v3 = version_ == OpenApiVersion::kV3;
    if (name == kQuantity) {
      schema = v3 ? Draft({{"oneOf", Draft::Array({Typed("string"), Typed("number")})}})
                  : Typed("string");
      schema["description"] = "A fixed-point number with a suffix: 500m, 2, 1.5Gi, 1e3.";
    } else if (name == kIntOrString) {
      schema = v3 ? Draft({{"oneOf", Draft::Array({Typed("integer"), Typed("string")})}})
                  : Typed("string");
      schema["format"] = "int-or-string";
      schema["description"] = "A number, or a string such as a percentage.";
    } else if (name.ends_with("Time")) {
      schema = Typed("string", "date-time");
      schema["description"] = "A time in RFC 3339 format.";
    } else {
      schema = Typed("object");
    }
    schemas_.emplace(name, std::move(schema));
  }
  return NamedReference(name);
}

Draft SchemaCollector::TypeOf(const api::TypeSchema& type) {
  switch (type.kind) {
    case FieldKind::kString:
    case FieldKind::kDuration:
      return Typed("string");
    case FieldKind::kBool:
      return Typed("boolean");
    case FieldKind::kInt32:
      return Typed("integer", "int32");
    case FieldKind::kInt64:
      return Typed("integer", "int64");
    case FieldKind::kDouble:
      return Typed("number", "double");
    case FieldKind::kBytes:
      return Typed("string", "byte");
    case FieldKind::kQuantity:
      return Leaf(kQuantity);
    case FieldKind::kTime:
      return Leaf(StrCat(kMeta, "Time"));
    case FieldKind::kMicroTime:
      return Leaf(StrCat(kMeta, "MicroTime"));
    case FieldKind::kIntOrString:
      return Leaf(kIntOrString);
    case FieldKind::kRaw:
      return Leaf(kRawExtension);
    case FieldKind::kJson:
      return Draft({{"x-kubernetes-preserve-unknown-fields", true}});
    case FieldKind::kSkipNodeOperations:
      // A boolean or a list of operations.
      if (version_ == OpenApiVersion::kV2) return Draft::Object();
      return Draft(
          {{"oneOf", Draft::Array({Typed("boolean"),
                                   Draft({{"type", "array"}, {"items", Typed("string")}})})}});
    case FieldKind::kStruct:
      return Reference(*type.structure);
    case FieldKind::kList: {
      Draft schema({{"type", "array"}, {"items", TypeOf(*type.element)}});
      switch (type.merge) {
        case MergeKind::kSet:
          schema["x-kubernetes-list-type"] = "set";
          break;
        case MergeKind::kMapList:
          schema["x-kubernetes-list-type"] = "map";
          for (std::string_view key : type.list_keys) {
            schema["x-kubernetes-list-map-keys"].Append(key);
          }
          break;
        case MergeKind::kAtomic:
        case MergeKind::kGranular:
          schema["x-kubernetes-list-type"] = "atomic";
          break;
      }
      return schema;
    }
    case FieldKind::kMap: {
      Draft schema({{"type", "object"}, {"additionalProperties", TypeOf(*type.element)}});
      if (type.merge == MergeKind::kAtomic) schema["x-kubernetes-map-type"] = "atomic";
      return schema;
    }
  }
  return Draft::Object();
}

Draft SchemaCollector::FieldOf(const api::FieldSchema& field) {
  Draft schema = TypeOf(field.type);
  const bool is_reference = schema.Has("$ref");
  // OpenAPI 3.0 allows no siblings of a $ref, so it is wrapped.
  if (is_reference && version_ == OpenApiVersion::kV3) {
    schema = Draft({{"allOf", Draft::Array({std::move(schema)})}});
  }
  if (!field.description.empty()) schema["description"] = field.description;
  if (field.type.kind == FieldKind::kStruct && field.type.merge == MergeKind::kAtomic) {
    schema["x-kubernetes-map-type"] = "atomic";
  }
  if (!field.type.patch_merge_key.empty()) {
    schema["x-kubernetes-patch-merge-key"] = field.type.patch_merge_key;
  }
  std::vector<std::string_view> strategies;
  if (field.type.patch_merge) strategies.push_back("merge");
  if (field.type.patch_retain_keys) strategies.push_back("retainKeys");
  if (field.type.patch_replace) strategies.push_back("replace");
  if (!strategies.empty()) schema["x-kubernetes-patch-strategy"] = Join(strategies, ",");
  return schema;
}

Draft SchemaCollector::StructOf(const api::StructSchema& structure) {
  Draft schema = Typed("object");
  Draft required = Draft::Array();
  for (const api::FieldSchema& field : structure.fields) {
    schema["properties"].Entry(*field.key) = FieldOf(field);
    if (field.required) required.Append(field.key->view());
  }
  if (required.size() > 0) schema["required"] = std::move(required);
  if (structure.preserve_unknown) schema["x-kubernetes-preserve-unknown-fields"] = true;
  const auto [first, last] = KindsByStruct().equal_range(&structure);
  for (auto it = first; it != last; ++it) {
    schema["x-kubernetes-group-version-kind"].Append(Draft({{"group", it->second->group},
                                                            {"version", it->second->version},
                                                            {"kind", it->second->kind}}));
  }
  return schema;
}

Draft SchemaCollector::Take() {
  while (!waiting_.empty()) {
    const api::StructSchema* next = waiting_.back();
    waiting_.pop_back();
    schemas_.emplace(next->name, StructOf(*next));
  }
  Draft all = Draft::Object();
  // Appended rather than looked up: there are hundreds.
  for (auto& [name, schema] : schemas_) {
    all.MutableMembers().emplace_back(api::KeyRef(std::string_view(name)), std::move(schema));
  }
  return all;
}

}  // namespace drakkar::apiserver
