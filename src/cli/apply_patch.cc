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

// Drops fields that tools leave in manifests unintentionally.
Draft Meaningful(Value manifest) {
  Draft draft(manifest);
  const Value created = manifest["metadata"]["creationTimestamp"];
  if (created.exists() && !created.has_value()) draft["metadata"].Remove("creationTimestamp");
  if (manifest["status"].exists() && manifest["status"].empty()) draft.Remove("status");
  return draft;
}

// Whether the server would treat both as the same object, however quantities and times are written.
bool SameMeaning(Value a, Value b, const api::StructSchema& schema) {
  api::ObjectReadOptions options;
  options.strictness = api::Strictness::kIgnore;
  const auto left = api::ConvertObject(a, schema, options);
  const auto right = api::ConvertObject(b, schema, options);
  return left.ok() && right.ok() && api::Equal(left->tree->root(), right->tree->root());
}

// The manifest that was applied last; null if there is none, or if it cannot be read.
TreePtr LastApplied(Value current) {
  const Value last = current["metadata"]["annotations"].Entry(api::kLastAppliedAnnotation);
  if (!last.is_string()) return nullptr;
  Result<TreePtr> parsed = api::ParseJson(last.str());
  return parsed.ok() ? *parsed : nullptr;
}

// Adds to `patch` what turns the members of `current` into those of `modified`, and removes those
// that only `last` has.
void AddChanges(Value last, Value current, Value modified, Draft& patch) {
  for (const api::MemberView& member : modified.members()) {
    const Value before = current.Entry(*member.key);
    if (member.value.is_object() && before.is_object()) {
      Draft inner = Draft::Object();
      AddChanges(last.Entry(*member.key), before, member.value, inner);
      if (inner.size() > 0) patch.Entry(*member.key) = std::move(inner);
    } else if (!api::Equal(before, member.value)) {
      patch.Entry(*member.key) = Draft(member.value);
    }
  }
  for (const api::MemberView& member : last.members()) {
    if (modified.Entry(*member.key).exists() || !current.Entry(*member.key).exists()) continue;
    patch.Entry(*member.key) = Draft(nullptr);
  }
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
  // Three-way merge of the last applied manifest, this manifest and the current object. First apply
  // the changes from the last manifest to this one, including deletions, to the current object.
  // Then overlay the whole manifest, which reverts changes that others made to its fields. The
  // patch is the difference from the current object.
  TreePtr target;
  const TreePtr original = LastApplied(current);
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

Result<std::string> CreateMergePatch(Value current, Value modified) {
  const TreePtr last = LastApplied(current);
  Draft patch = Draft::Object();
  AddChanges(last == nullptr ? Value() : last->root(), current, modified, patch);
  // An annotation that is written differently is no change by itself.
  if (patch.size() == 1 && last != nullptr) {
    const TreePtr changes = patch.Freeze();
    const Value annotations = changes->root()["metadata"]["annotations"];
    const Value text = annotations.Entry(api::kLastAppliedAnnotation);
    if (changes->root()["metadata"].size() == 1 && annotations.size() == 1 && text.is_string()) {
      const Result<TreePtr> now = api::ParseJson(text.str());
      if (now.ok() && api::Equal((*now)->root(), last->root())) return std::string("{}");
    }
  }
  return api::WriteJson(patch.Freeze()->root());
}

}  // namespace drakkar::cli
