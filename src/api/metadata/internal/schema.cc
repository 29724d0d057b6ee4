#include "api/metadata/internal/schema.h"

#include <array>
#include <span>

namespace drakkar::metadata::internal {
namespace {

using api::FieldKind;
using api::FieldSchema;
using api::StructSchema;
using api::TypeSchema;

FieldSchema Field(api::FieldName name, TypeSchema type) {
  FieldSchema field;
  field.key = &name.key();
  field.type = type;
  return field;
}

FieldSchema Always(FieldSchema field) {
  field.required = true;
  field.omit_empty = false;
  return field;
}

FieldSchema Pointer(FieldSchema field) {
  field.pointer = true;
  return field;
}

TypeSchema StructType(const StructSchema* structure) {
  TypeSchema type;
  type.kind = FieldKind::kStruct;
  type.structure = structure;
  return type;
}

TypeSchema ListOf(const TypeSchema* element) {
  TypeSchema type;
  type.kind = FieldKind::kList;
  type.element = element;
  return type;
}

TypeSchema MapOf(const TypeSchema* element) {
  TypeSchema type;
  type.kind = FieldKind::kMap;
  type.element = element;
  return type;
}

constexpr std::string_view kNetworkDataName = "io.k8s.api.resource.v1.NetworkDeviceData";

// One version in one dialect. Not movable: the parts point at each other.
class VersionSchema {
 public:
  VersionSchema(std::string_view document_name, std::string_view request_name,
                std::string_view device_name, Dialect dialect) {
    network_fields_ = {Field("interfaceName", text_), Field("ips", ListOf(&text_)),
                       Field("hardwareAddress", text_), Field("addresses", ListOf(&text_)),
                       Field("hwAddress", text_)};
    const std::size_t network_count = dialect == Dialect::kKep ? network_fields_.size() : 3;
    network_ = {.name = kNetworkDataName,
                .fields = std::span(network_fields_).first(network_count)};
    attribute_ = StructType(api::FindStruct("io.k8s.api.resource.v1.DeviceAttribute"));
    device_fields_ = {Always(Field("driver", text_)), Always(Field("pool", text_)),
                      Always(Field("name", text_)), Field("attributes", MapOf(&attribute_)),
                      Pointer(Field("networkData", StructType(&network_)))};
    device_ = {.name = device_name, .fields = device_fields_};
    device_type_ = StructType(&device_);
    request_fields_ = {Always(Field("name", text_)), Field("devices", ListOf(&device_type_))};
    request_ = {.name = request_name, .fields = request_fields_};
    request_type_ = StructType(&request_);
    const StructSchema* object_meta =
        api::FindStruct("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    document_fields_ = {Field("kind", text_), Field("apiVersion", text_),
                        Always(Field("metadata", StructType(object_meta))),
                        Pointer(Field("podClaimName", text_)),
                        Field("requests", ListOf(&request_type_))};
    document_ = {.name = document_name, .fields = document_fields_};
  }
  VersionSchema(const VersionSchema&) = delete;
  VersionSchema& operator=(const VersionSchema&) = delete;

  const StructSchema& document() const { return document_; }

 private:
  TypeSchema text_;
  std::array<FieldSchema, 5> network_fields_;
  StructSchema network_;
  TypeSchema attribute_;
  std::array<FieldSchema, 5> device_fields_;
  StructSchema device_;
  TypeSchema device_type_;
  std::array<FieldSchema, 2> request_fields_;
  StructSchema request_;
  TypeSchema request_type_;
  std::array<FieldSchema, 5> document_fields_;
  StructSchema document_;
};

}  // namespace

const StructSchema* FindSchema(std::string_view api_version, Dialect dialect) {
  if (api_version == kV1alpha1) {
    static const VersionSchema kKep("metadata.v1alpha1.DeviceMetadata",
                                    "metadata.v1alpha1.DeviceMetadataRequest",
                                    "metadata.v1alpha1.Device", Dialect::kKep);
    static const VersionSchema kKubernetes("metadata.v1alpha1.DeviceMetadata",
                                           "metadata.v1alpha1.DeviceMetadataRequest",
                                           "metadata.v1alpha1.Device", Dialect::kKubernetes);
    return &(dialect == Dialect::kKep ? kKep : kKubernetes).document();
  }
  if (api_version == kV1beta1) {
    static const VersionSchema kKep("metadata.v1beta1.DeviceMetadata",
                                    "metadata.v1beta1.DeviceMetadataRequest",
                                    "metadata.v1beta1.Device", Dialect::kKep);
    static const VersionSchema kKubernetes("metadata.v1beta1.DeviceMetadata",
                                           "metadata.v1beta1.DeviceMetadataRequest",
                                           "metadata.v1beta1.Device", Dialect::kKubernetes);
    return &(dialect == Dialect::kKep ? kKep : kKubernetes).document();
  }
  return nullptr;
}

}  // namespace drakkar::metadata::internal
