#pragma once

#include <string>
#include <string_view>

#include "api/meta/object.h"
#include "api/scheme/scheme.h"
#include "storage/store.h"

namespace drakkar::apiserver {

// The keys and values of objects in the store. Drakkar's own layout has the group in every key and
// JSON values. Kubernetes' layout is that of kube-apiserver, which can read and write the same
// store: legacy names in keys, built-in kinds in a protobuf envelope, all others as JSON.
struct StoreLayout {
  enum class MediaType { kProtobuf, kJson };

  bool is_kubernetes = false;
  std::string root = "/registry";               // of all keys; no slash at its end
  MediaType media_type = MediaType::kProtobuf;  // of built-in kinds, in Kubernetes' layout
};

// What precedes all keys, "/registry/".
std::string RootPrefix(const StoreLayout& layout);
// What precedes the keys of a built-in kind: "/registry/pods/", or "/registry/core/pods/" in our
// own layout.
std::string KeyPrefix(const StoreLayout& layout, const api::KindSchema& kind);
// The value for an object, in the version that it has.
storage::Bytes EncodeStored(const StoreLayout& layout, const api::Object& object);

}  // namespace drakkar::apiserver
