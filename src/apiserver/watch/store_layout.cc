#include "apiserver/watch/store_layout.h"

#include "api/codec/protobuf_writer.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// Built-in resources whose keys are not their plural.
constexpr struct {
  std::string_view group;
  std::string_view plural;
  std::string_view key;
} kLegacyNames[] = {
    {"", "nodes", "minions"},
    {"", "services", "services/specs"},
    {"", "endpoints", "services/endpoints"},
    {"", "replicationcontrollers", "controllers"},
    {"networking.k8s.io", "ingresses", "ingress"},
};

// Groups of servers inside kube-apiserver that keep the group in the key and write JSON.
bool IsDelegated(std::string_view group) {
  return group == "apiextensions.k8s.io" || group == "apiregistration.k8s.io";
}

}  // namespace

std::string RootPrefix(const StoreLayout& layout) {
  return layout.root + "/";
}

std::string KeyPrefix(const StoreLayout& layout, const api::KindSchema& kind) {
  if (!layout.is_kubernetes) {
    return StrCat(layout.root, "/", kind.group.empty() ? "core" : kind.group, "/", kind.plural,
                  "/");
  }
  if (IsDelegated(kind.group)) return StrCat(layout.root, "/", kind.group, "/", kind.plural, "/");
  std::string_view name = kind.plural;
  for (const auto& legacy : kLegacyNames) {
    if (legacy.group == kind.group && legacy.plural == kind.plural) name = legacy.key;
  }
  return StrCat(layout.root, "/", name, "/");
}

storage::Bytes EncodeStored(const StoreLayout& layout, const api::Object& object) {
  if (!layout.is_kubernetes || layout.media_type == StoreLayout::MediaType::kJson) {
    return object.json();
  }
  const api::KindSchema* kind = api::FindKindByApiVersion(object.api_version(), object.kind());
  if (kind == nullptr || IsDelegated(kind->group)) return object.json();
  const std::string message = api::WriteProtobuf(object.root(), *kind->schema);
  std::string value =
      api::ProtobufEnvelopeHead(object.api_version(), object.kind(), message.size());
  value += message;
  return std::make_shared<const std::string>(std::move(value));
}

}  // namespace drakkar::apiserver
