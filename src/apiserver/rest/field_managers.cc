#include "apiserver/rest/field_managers.h"

#include "api/apply/managed_fields.h"
#include "api/codec/object_reader.h"
#include "api/codec/yaml_reader.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/custom/definition.h"
#include "apiserver/registry/reset_fields.h"
#include "apiserver/rest/custom_decode.h"
#include "apiserver/rest/decode.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/metadata.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// The kind in another version.
const api::KindSchema* FindVersion(const api::KindSchema& kind, std::string_view api_version) {
  if (kind.family == nullptr) return api::FindKindByApiVersion(api_version, kind.kind);
  for (const api::KindSchema* version : kind.family->versions) {
    if (version->is_api_version(api_version)) return version;
  }
  return nullptr;
}

// Views only: `request`, `name`, `version` and `now` must outlive it.
api::FieldManager MakeManager(const api::KindSchema& kind, const Strategy& strategy,
                              const Request& request, std::string_view name,
                              std::string_view version, std::string_view now) {
  api::FieldManager by;
  by.manager = name;
  by.subresource = request.subresource;
  by.api_version = version;
  by.schema = request.kind->schema;
  by.now = now;
  by.reset_fields = ResetFieldsFor(kind, strategy, request.subresource);
  by.convert =
      [&kind](api::Value value,
              std::string_view api_version) -> std::pair<api::TreePtr, const api::StructSchema*> {
    const api::KindSchema* other = FindVersion(kind, api_version);
    if (other == nullptr) return {nullptr, nullptr};
    // Its webhook cannot be called here, so the entry is not changed.
    if (IsConvertedByWebhook(*other) && !other->is_api_version(value["apiVersion"].str())) {
      return {nullptr, nullptr};
    }
    return {ConvertTree(api::CopyTree(value), *other), other->schema};
  };
  return by;
}

}  // namespace

std::string ManagerOf(const Request& request) {
  if (!request.field_manager.empty()) return request.field_manager;
  std::string name;
  for (char c : request.user_agent.substr(0, request.user_agent.find('/'))) {
    if (c >= 0x20 && c < 0x7f && name.size() < kMaxManagerBytes) name += c;
  }
  return name;
}

void PinSentEntries(api::Draft& object) {
  api::Draft* sent = object["metadata"].Find("managedFields");
  if (sent == nullptr || sent->borrowed().exists()) return;
  const api::TreePtr pinned = sent->Freeze();
  *sent = api::Draft(pinned);
  object.KeepAlive(pinned);
}

void TrackManagedFields(const api::KindSchema& kind, const Strategy& strategy,
                        const Request& request, const api::Object* before, api::Value after,
                        WallTime now, api::Draft& object) {
  const std::string name = ManagerOf(request);
  const std::string version = request.kind->api_version();
  const std::string time = api::FormatTime(now);
  const api::FieldManager by = MakeManager(kind, strategy, request, name, version, time);
  api::Draft entries;
  if (request.kind == &kind) {
    entries = api::TrackUpdate(before == nullptr ? api::Value() : before->root(), after, by);
  } else {
    // Paths are in the client's version.
    const api::TreePtr live =
        before == nullptr ? nullptr : ConvertTree(before->tree(), *request.kind);
    const api::TreePtr next = ConvertTree(api::CopyTree(after), *request.kind);
    entries = api::TrackUpdate(live == nullptr ? api::Value() : live->root(), next->root(), by);
    if (entries.exists()) entries = api::Draft(entries.Freeze());
  }
  api::Draft& metadata = object["metadata"];
  if (entries.exists()) {
    metadata["managedFields"] = std::move(entries);
  } else {
    metadata.Remove("managedFields");
  }
}

std::optional<Failure> ParseApplied(const Request& request, api::TreePtr& applied,
                                    std::vector<std::string>& warnings) {
  if (request.decode_failure != nullptr) return *request.decode_failure;
  if (request.patch_tree != nullptr) {
    applied = request.patch_tree;
    for (const std::string& warning : request.decode_warnings) warnings.push_back(warning);
    return std::nullopt;
  }
  std::vector<std::string> duplicates;
  Result<std::vector<api::TreePtr>> documents =
      api::ParseYaml(request.text, {.duplicates = &duplicates});
  if (!documents.ok()) {
    return api::StatusBadRequest(StrCat("error decoding YAML: ", documents.error().message));
  }
  if (documents->size() != 1 || !documents->front()->root().is_object()) {
    return api::StatusBadRequest("error decoding YAML: the body must be one object");
  }
  if (request.field_validation == FieldValidation::kStrict && !duplicates.empty()) {
    return api::StatusBadRequest(StrCat("error strict decoding YAML: yaml: unmarshal errors:\n  ",
                                        Join(duplicates, "\n  ")));
  }
  if (request.field_validation == FieldValidation::kWarn) {
    for (std::string& duplicate : duplicates) warnings.push_back(std::move(duplicate));
  }
  applied = std::move(documents->front());
  return std::nullopt;
}

std::optional<Failure> BuildApply(const api::KindSchema& kind, const Strategy& strategy,
                                  const Request& request, const api::Object* before, WallTime now,
                                  api::TreePtr& asked, std::vector<std::string>& warnings) {
  api::TreePtr parsed;
  if (std::optional<Failure> failure = ParseApplied(request, parsed, warnings)) return failure;
  const api::Value applied = parsed->root();
  const std::string name = ManagerOf(request);
  const std::string version = request.kind->api_version();
  if (applied["kind"].str() != request.kind->kind && applied["apiVersion"].str() == version) {
    return api::StatusBadRequest(StrCat("the kind in the data (", applied["kind"].str(),
                                        ") does not match the expected kind (", request.kind->kind,
                                        ")"));
  }
  const std::string time = api::FormatTime(now);
  const api::FieldManager by = MakeManager(kind, strategy, request, name, version, time);
  api::TreePtr live;
  if (before != nullptr) {
    live = request.kind == &kind ? before->tree() : ConvertTree(before->tree(), *request.kind);
  }
  auto result = api::ApplyConfiguration(live == nullptr ? api::Value() : live->root(), applied,
                                        request.force, by);
  if (WorkBudget::IsExceeded()) return TooMuchWorkFailure();
  if (auto* failure = std::get_if<api::Status>(&result)) return std::move(*failure);
  if (request.kind->family != nullptr) {
    asked = std::get<api::Applied>(result).object;
    return NormalizeCustom(*request.kind, request, asked, warnings);
  }
  Result<api::ObjectReadResult> read =
      api::ConvertObject(std::get<api::Applied>(result).object, *request.kind->schema,
                         {.strictness = api::Strictness::kIgnore});
  if (!read.ok()) {
    return api::StatusBadRequest(
        StrCat("failed to convert the applied object: ", read.error().message));
  }
  if (read->tree->size_bytes() > kMaxTreeBytes) return TooMuchWorkFailure();
  asked = std::move(read->tree);
  return std::nullopt;
}

std::optional<Failure> CheckPatchOptions(const Request& request) {
  if (request.verb != Verb::kPatch) return std::nullopt;
  api::FieldErrors errors;
  if (request.patch == PatchKind::kApply) {
    if (request.field_manager.empty()) {
      errors.push_back(Required("fieldManager", "is required for apply patch"));
    }
  } else if (request.force) {
    errors.push_back(Forbidden("force", "may not be specified for non-apply patch"));
  }
  if (errors.empty()) return std::nullopt;
  return api::StatusInvalid("meta.k8s.io", "PatchOptions", "", errors);
}

}  // namespace drakkar::apiserver
