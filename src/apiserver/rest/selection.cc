#include "apiserver/rest/selection.h"

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/field_selector.h"
#include "api/meta/label_selector.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/conversion/versions.h"
#include "base/exec/work_budget.h"
#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::size_t kMaxRequirements = 500;
// What checking one object costs, in steps of the work budget.
constexpr std::size_t kStepsPerObject = 50;
constexpr std::size_t kStepsPerRequirement = 100;
constexpr std::string_view kContinueVersion = "meta.k8s.io/v1";

bool IsKnownField(const api::KindSchema& kind, std::string_view field) {
  if (field == "metadata.name") return true;
  if (field == "metadata.namespace") return kind.namespaced;
  for (std::string_view each : kind.field_selectors) {
    if (each == field) return true;
  }
  return false;
}

Failure UnknownField(const api::KindSchema& kind, std::string_view field) {
  if (kind.field_selectors.empty()) {
    return api::StatusBadRequest(StrCat(Quote(field),
                                        " is not a known field selector: only \"metadata.name\"",
                                        kind.namespaced ? ", \"metadata.namespace\"" : ""));
  }
  if (kind.group.empty()) {
    return api::StatusBadRequest(StrCat("field label not supported: ", field));
  }
  return api::StatusBadRequest(StrCat("field label not supported for ", kind.group, "/",
                                      kind.version, ", Kind=", kind.kind, ": ", field));
}

// The text of a field by its dotted path; booleans as "true" and "false", absent fields as "".
std::string FieldText(const api::Object& object, std::string_view field) {
  if (field == "source") {  // of an event: the reporter, in the old or the new field
    const std::string_view component = object["source"]["component"].str();
    return std::string(component.empty() ? object["reportingComponent"].str() : component);
  }
  api::Value value = object.root();
  for (std::string_view part : Split(field, '.')) value = value.Entry(part);
  switch (value.kind()) {
    case api::ValueKind::kBool:
      return value.boolean() ? "true" : "false";
    case api::ValueKind::kInt:
      return std::to_string(value.integer());
    default:
      break;
  }
  if (value.has_value()) return std::string(value.str());
  // Kubernetes matches these as "false" if they are not set.
  const bool is_boolean_field = field == "spec.unschedulable" || field == "spec.hostNetwork";
  return is_boolean_field ? "false" : "";
}

}  // namespace

std::optional<Failure> BuildSelection(const Request& request, Selection& selection) {
  Result<api::LabelSelector> labels = api::LabelSelector::Parse(request.label_selector);
  if (!labels.ok()) return api::StatusBadRequest(labels.error().message);
  Result<api::FieldSelector> fields = api::FieldSelector::Parse(request.field_selector);
  if (!fields.ok()) return api::StatusBadRequest(fields.error().message);
  for (const api::FieldRequirement& requirement : fields->requirements()) {
    if (!IsKnownField(*request.kind, requirement.field)) {
      return UnknownField(*request.kind, requirement.field);
    }
  }
  if (labels->empty() && fields->empty()) return std::nullopt;
  // Every requirement is checked for every object and, by a watch, for every change.
  const std::size_t terms = labels->requirements().size() + fields->requirements().size();
  if (terms > kMaxRequirements) {
    return api::StatusRequestEntityTooLarge(
        StrCat("the selectors have ", terms, " requirements; the limit is ", kMaxRequirements));
  }
  // Selectors apply to objects in their storage version.
  std::vector<api::FieldRequirement> requirements = fields->requirements();
  for (api::FieldRequirement& requirement : requirements) {
    requirement.field = StoredField(*request.kind, requirement.field);
  }
  selection = [labels = std::move(*labels),
               requirements = std::move(requirements)](const api::Object& object) {
    WorkBudget::Charge(kStepsPerObject + kStepsPerRequirement * requirements.size());
    if (WorkBudget::IsExceeded()) return false;
    if (!labels.empty() && !labels.Matches(object["metadata"]["labels"])) return false;
    for (const api::FieldRequirement& requirement : requirements) {
      const bool same = FieldText(object, requirement.field) == requirement.value;
      if (same != requirement.equals) return false;
    }
    return true;
  };
  return std::nullopt;
}

std::optional<Failure> ParseResourceVersion(const std::string& text, storage::Revision& revision) {
  revision = 0;
  if (text.empty() || text == "0") return std::nullopt;
  const std::optional<std::int64_t> parsed = ParseInt64(text);
  if (!parsed || *parsed < 0) {
    return api::StatusBadRequest(StrCat("invalid resource version ", Quote(text)));
  }
  revision = *parsed;
  return std::nullopt;
}

std::string EncodeContinue(const ContinueToken& token) {
  api::Draft draft = api::Draft::Object();
  draft["v"] = kContinueVersion;
  draft["rv"] = token.revision;
  draft["start"] = token.last_key;
  return Base64UrlEncode(api::WriteJson(draft.Freeze()->root()));
}

std::optional<Failure> DecodeContinue(const std::string& text, ContinueToken& token) {
  Result<std::string> json = Base64UrlDecode(text);
  if (json.ok()) {
    Result<api::TreePtr> tree = api::ParseJson(*json);
    if (tree.ok() && (*tree)->root()["v"].str() == kContinueVersion) {
      token.revision = (*tree)->root()["rv"].integer();
      token.last_key = (*tree)->root()["start"].str();
      const bool has_state = token.revision > 0 || token.revision == ContinueToken::kNewest;
      if (has_state && !token.last_key.empty()) return std::nullopt;
    }
  }
  return api::StatusBadRequest("continue key is not valid: it was not issued by this server");
}

}  // namespace drakkar::apiserver
