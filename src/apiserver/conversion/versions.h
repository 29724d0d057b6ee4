#pragma once

#include <string>
#include <string_view>

#include "api/meta/object.h"

namespace drakkar::api {
struct KindSchema;
}

// Converts objects between served versions. Only this file knows which kinds differ.
namespace drakkar::apiserver {

// `object` in the version (for events also the group) of `to`. It may be in any version of its
// kind; kinds with a single version are returned unchanged.
api::TreePtr ConvertTree(const api::TreePtr& object, const api::KindSchema& to);
// The same for a published object. Built once per version and kept with the object. For kinds that
// a webhook converts: what KeepConverted has kept, or null.
api::ObjectPtr ConvertObjectTo(const api::ObjectPtr& object, const api::KindSchema& to);

// Keeps an object in another version, as a webhook returned it. Thread-safe.
void KeepConverted(const api::ObjectPtr& object, const api::KindSchema& to,
                   api::ObjectPtr converted);

// A custom resource as read from the store, with the defaults that its stored version has today:
// they may be newer than the object. The same object if it lacks none.
api::ObjectPtr WithStoredDefaults(const api::ObjectPtr& object, const api::KindSchema& stored);

// The field selector `field` of `kind`, as the storage version spells it.
std::string StoredField(const api::KindSchema& kind, std::string_view field);

}  // namespace drakkar::apiserver
