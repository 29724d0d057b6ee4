#include "cli/apply_patch.h"

#include "api/codec/object_reader.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/annotations.h"
#include "api/patch/strategic.h"
#include "api/tree/draft.h"

namespace drakkar::cli {
namespace {

using api::Draft;
using api::TreePtr;
using api::Value;

// What tools leave in manifests and nobody means.
Draft Meaningful(Value manifest) {
  Draft draft(manifest);
  const Value created = manifest["metadata"]["creationTimestamp"];
  if (created.exists() && !created.has_value()) draft["metadata"].Remove("creationTimestamp");
  if (manifest["status"].exists() && manifest["status"].empty()) draft.Remove("status");
  return draft;
}

// Same object to the server, however quantities and times are written.
bool SameMeaning(Value a, Value b, const api::StructSchema& schema) {
  api::ObjectReadOptions options;
  options.strictness = api::Strictness::kIgnore;
  const auto left = api::ConvertObject(a, schema, options);
  const auto right = api::ConvertObject(b, schema, options);
  return left.ok() && right.ok() && api::Equal(left->tree->root(), right->tree->root());
}

}  // namespace

TreePtr WithLastApplied(Value manifest) {
  Draft draft = Meaningful(manifest);
  if (!draft["metadata"]["annotations"].is_object()) {
    draft["metadata"]["annotations"] = Draft::Object();
  }
  draft["metadata"]["annotations"].RemoveEntry(api::kLastAppliedAnnotation);
  api::WriteOptions options;
  options.sort_members = true;
  std::string json = api::WriteJson(draft.Freeze()->root(), options);
  json += '\n';
  draft["metadata"]["annotations"].Entry(api::kLastAppliedAnnotation) = std::move(json);
  return draft.Freeze();
}

Result<std::string> CreateApplyPatch(Value current, Value modified,
                                     const api::StructSchema& schema) {
  // Three objects (last applied, manifest, current) and patches between two: first what changed
  // from the last manifest to this one, deletions among it, is done to the current object; then the
  // whole manifest is laid over it, which undoes what others changed in the fields it has. The
  // patch is the difference of that to where we started.
  TreePtr target;
  const Value last = current["metadata"]["annotations"].Entry(api::kLastAppliedAnnotation);
  TreePtr original;
  if (last.is_string()) {
    // An annotation that somebody broke counts as none.
    if (Result<TreePtr> parsed = api::ParseJson(last.str()); parsed.ok()) original = *parsed;
  }
  Value start = current;
  if (original != nullptr) {
    ASSIGN_OR_RETURN(const TreePtr changes,
                     api::CreateStrategicPatch(original->root(), modified, schema));
    ASSIGN_OR_RETURN(target, api::ApplyStrategicPatch(current, changes->root(), schema));
    start = target->root();
  }
  ASSIGN_OR_RETURN(const TreePtr goal, api::ApplyStrategicPatch(start, modified, schema));
  if (SameMeaning(goal->root(), current, schema)) return std::string("{}");
  ASSIGN_OR_RETURN(const TreePtr patch, api::CreateStrategicPatch(current, goal->root(), schema));
  return api::WriteJson(patch->root());
}

}  // namespace drakkar::cli
