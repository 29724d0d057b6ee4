#pragma once

#include <string>

#include "api/meta/object.h"
#include "api/tree/draft.h"

namespace drakkar::api {
struct KindSchema;
}

namespace drakkar::controllers {

// The pod that `pod_template` describes, controlled by `owner`, with a name to be generated.
// Borrows from the template, whose tree it keeps alive if `owner` is the object the template lies
// in.
api::Draft PodFromTemplate(const api::ObjectPtr& owner, const api::KindSchema& owner_kind,
                           api::Value pod_template);

// "<name>-", or without the dash where it would make the prefix too long.
std::string PodNamePrefix(std::string_view owner);

// A short hash of a template for names and labels, in characters that spell no words. `collisions`
// tells apart templates that collide.
std::string TemplateHash(api::Value pod_template, std::int64_t collisions);

}  // namespace drakkar::controllers
