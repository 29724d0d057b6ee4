#pragma once

#include <string_view>

#include "api/meta/object.h"
#include "base/result/result.h"
#include "storage/store.h"

namespace drakkar::apiserver {

// Who wrote the bytes. A foreign writer (kube-apiserver) may have used another version, and JSON in
// another form than ours.
enum class Writer { kThisServer, kAnyServer };

// The object in these stored bytes (JSON or Kubernetes' protobuf envelope), with this revision: the
// bytes may have another version, or none. A built-in kind is converted to the version it is stored
// in here.
Result<api::ObjectPtr> ReadStored(std::string_view bytes, storage::Revision revision,
                                  Writer writer = Writer::kThisServer);

// The same object with another revision.
api::ObjectPtr Numbered(const api::TreePtr& tree, storage::Revision revision);

}  // namespace drakkar::apiserver
