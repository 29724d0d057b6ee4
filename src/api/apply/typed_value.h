#pragma once

#include <string>
#include <vector>

#include "api/apply/field_set.h"
#include "api/schema/schema.h"
#include "api/tree/draft.h"

// Trees as server-side apply sees them: maps and structs by name, lists as the schema says (atomic,
// set, or map by key).
namespace drakkar::api {

// The difference: new and changed paths are kOwned, removed ones kRemoved. Fields that Go always
// writes count as present with their zero value. Texts are borrowed from the trees.
const FieldNode* CompareTyped(Value before, Value after, const StructSchema& schema, Arena& arena);

// The paths that an applied configuration claims.
const FieldNode* FieldSetOf(Value value, const StructSchema& schema, Arena& arena);

// `live` with everything that `applied` states, which takes precedence. Borrows from both.
Draft MergeTyped(Value live, Value applied, const StructSchema& schema);

// `value` without the paths of `set`; atomic values are only removed as a whole. Borrows.
Draft RemovePaths(Value value, const FieldNode* set, const StructSchema& schema, Arena& arena);

// The set, plus every named field on the way to its paths.
const FieldNode* WithNamedFields(const FieldNode* set, const StructSchema& schema, Arena& arena);

// Why `applied` cannot be applied: unknown fields, duplicate elements, elements without keys.
// ".spec.bogus: field not declared in schema"
std::vector<std::string> CheckTyped(Value applied, const StructSchema& schema);

}  // namespace drakkar::api
