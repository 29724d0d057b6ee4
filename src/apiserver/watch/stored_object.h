#pragma once

#include <string_view>

#include "api/meta/object.h"
#include "base/result/result.h"
#include "storage/store.h"

namespace drakkar::apiserver {

// The object in these stored bytes, with this revision: the bytes may have another version, or
// none.
Result<api::ObjectPtr> ReadStored(std::string_view bytes, storage::Revision revision);

// The same object with another revision.
api::ObjectPtr Numbered(const api::TreePtr& tree, storage::Revision revision);

}  // namespace drakkar::apiserver
