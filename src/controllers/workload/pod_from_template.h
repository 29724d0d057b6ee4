#pragma once

#include <string>

#include "api/meta/object.h"
#include "api/tree/draft.h"

namespace drakkar::api {
struct KindSchema;
}

namespace drakkar::controllers {

// The pod that `pod_template` describes, controlled by `owner`, with a generated name. Borrows from
// the template, and keeps its tree alive if the template is part of `owner`.
api::Draft PodFromTemplate(const api::ObjectPtr& owner, const api::KindSchema& owner_kind,
                           api::Value pod_template);

// "<name>-", or "<name>" if the dash would make the prefix too long.
std::string PodNamePrefix(std::string_view owner);

// A short hash of a template for names and labels, in characters that spell no words. `collisions`
// distinguishes templates whose hashes collide.
std::string TemplateHash(api::Value pod_template, std::int64_t collisions);

}  // namespace drakkar::controllers
