#include "apiserver/watch/stored_object.h"

#include <string>

#include "api/json/reader.h"
#include "api/tree/draft.h"

namespace drakkar::apiserver {

api::ObjectPtr Numbered(const api::TreePtr& tree, storage::Revision revision) {
  api::Draft draft(tree);
  draft["metadata"]["resourceVersion"] = std::to_string(revision);
  return std::make_shared<const api::Object>(draft.Freeze());
}

Result<api::ObjectPtr> ReadStored(std::string_view bytes, storage::Revision revision) {
  ASSIGN_OR_RETURN(const api::TreePtr tree, api::ParseJson(bytes));
  return Numbered(tree, revision);
}

}  // namespace drakkar::apiserver
