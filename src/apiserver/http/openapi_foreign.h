#pragma once

#include <string_view>

#include "api/tree/draft.h"

namespace drakkar::apiserver {

// Adds the schemas of another server's OpenAPI v3 document to the definitions of one in version 2.
// What version 2 cannot say is left out. A name that is there already keeps its definition: servers
// share the types of Kubernetes' libraries. A text that is no such document adds nothing.
void AddForeignDefinitions(api::Draft& definitions, std::string_view document);

}  // namespace drakkar::apiserver
