#include "apiserver/custom/definition_rules.h"

#include <algorithm>
#include <set>
#include <string>

#include "api/json/jsonpath.h"
#include "api/meta/names.h"
#include "api/scheme/scheme.h"
#include "apiserver/custom/json_schema.h"
#include "apiserver/custom/json_values.h"
#include "apiserver/custom/rules.h"
#include "apiserver/custom/webhook_client_rules.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldError;
using api::FieldErrors;
using api::FieldPath;
using api::Value;

constexpr std::string_view kApproval = "api-approved.kubernetes.io";
constexpr std::string_view kImmutable = "field is immutable";
constexpr std::size_t kMaxSelectableFields = 8;
constexpr std::size_t kMaxWarningBytes = 256;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

class DefinitionChecker {
 public:
  FieldErrors Check(Value definition, Value before) {
    const Value spec = definition["spec"];
    const FieldPath path("spec");
    const std::string name = StrCat(spec["names"]["plural"].str(), ".", spec["group"].str());
    if (definition["metadata"]["name"].str() != name) {
      errors_.push_back(FieldError::Invalid(FieldPath("metadata").Child("name"),
                                            definition["metadata"]["name"].str(),
                                            "must be spec.names.plural+\".\"+spec.group"));
    }
    CheckGroup(definition, before);
    if (const std::string_view scope = spec["scope"].str(); scope.empty()) {
      errors_.push_back(FieldError::Required(path.Child("scope"), ""));
    } else if (scope != "Cluster" && scope != "Namespaced") {
      errors_.push_back(
          FieldError::NotSupported(path.Child("scope"), scope, {"Cluster", "Namespaced"}));
    }
    CheckNames(spec["names"], path.Child("names"));
    CheckVersions(spec, before["spec"], path);
    CheckConversion(spec, path);
    if (spec["preserveUnknownFields"].boolean()) {
      errors_.push_back(FieldError::Invalid(path.Child("preserveUnknownFields"), true,
                                            "cannot set to true, set "
                                            "x-kubernetes-preserve-unknown-fields to true in "
                                            "spec.versions[*].schema instead"));
    }
    if (before.has_value()) CheckUnchanged(definition, before);
    return std::move(errors_);
  }

 private:
  void CheckGroup(Value definition, Value before) {
    const std::string_view group = definition["spec"]["group"].str();
    const FieldPath path = FieldPath("spec").Child("group");
    if (group.empty()) {
      errors_.push_back(FieldError::Required(path, ""));
      return;
    }
    if (const api::Problems problems = api::CheckDnsSubdomain(group); !problems.empty()) {
      errors_.push_back(FieldError::Invalid(path, group, Join(problems, ",")));
    } else if (group.find('.') == std::string_view::npos) {
      errors_.push_back(
          FieldError::Invalid(path, group, "should be a domain with at least one dot"));
    }
    for (const api::KindSchema& kind : api::AllKinds()) {
      if (kind.group != group) continue;
      errors_.push_back(FieldError::Forbidden(path, "this API group is built in"));
      return;
    }
    const bool is_protected = group == "k8s.io" || group == "kubernetes.io" ||
                              group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io");
    if (!is_protected || before.has_value()) return;
    const Value approval = definition["metadata"]["annotations"].Entry(kApproval);
    const FieldPath at = FieldPath("metadata").Child("annotations").Key(kApproval);
    const std::string start =
        StrCat("protected groups must have approval annotation ", Quote(kApproval));
    constexpr std::string_view kSee = ", see https://github.com/kubernetes/enhancements/pull/1111";
    if (!approval.exists()) {
      errors_.push_back(FieldError::Required(at, StrCat(start, kSee)));
    } else if (!approval.str().starts_with("unapproved") &&
               approval.str().find("://") == std::string_view::npos) {
      errors_.push_back(FieldError::Invalid(
          at, approval.str(),
          StrCat(start, " with either a URL or a reason starting with \"unapproved\"", kSee)));
    }
  }

  void CheckLabel(const FieldPath& path, std::string_view text) {
    if (text.empty()) return;
    if (const api::Problems problems = api::CheckDns1035Label(text); !problems.empty()) {
      errors_.push_back(FieldError::Invalid(path, text, Join(problems, ",")));
    }
  }
  void CheckKindName(const FieldPath& path, std::string_view text) {
    if (text.empty()) return;
    if (const api::Problems problems = api::CheckDns1035Label(Lower(text)); !problems.empty()) {
      errors_.push_back(FieldError::Invalid(
          path, text,
          StrCat("may have mixed case, but should otherwise match: ", Join(problems, ","))));
    }
  }

  void CheckNames(Value names, const FieldPath& path) {
    for (const api::FieldName name : api::FieldNames{"plural", "singular", "kind", "listKind"}) {
      if (names[name].str().empty()) errors_.push_back(FieldError::Required(path.Child(name), ""));
    }
    CheckLabel(path.Child("plural"), names["plural"].str());
    CheckLabel(path.Child("singular"), names["singular"].str());
    CheckKindName(path.Child("kind"), names["kind"].str());
    CheckKindName(path.Child("listKind"), names["listKind"].str());
    std::size_t index = 0;
    for (Value each : names["shortNames"].elements()) {
      CheckLabel(path.Child("shortNames").Index(index++), each.str());
    }
    if (const std::string_view kind = names["kind"].str();
        !kind.empty() && kind == names["listKind"].str()) {
      errors_.push_back(FieldError::Invalid(path.Child("listKind"), kind,
                                            "kind and listKind may not be the same"));
    }
    index = 0;
    for (Value each : names["categories"].elements()) {
      CheckLabel(path.Child("categories").Index(index++), each.str());
    }
  }

  void CheckVersions(Value spec, Value before, const FieldPath& path) {
    const FieldPath versions = path.Child("versions");
    std::set<std::string_view> names;
    bool is_unique = true;
    std::size_t stored = 0;
    std::size_t index = 0;
    for (Value version : spec["versions"].elements()) {
      if (WorkBudget::IsExceeded()) return;
      const FieldPath at = versions.Index(index++);
      const std::string_view name = version["name"].str();
      stored += version["storage"].boolean() ? 1 : 0;
      is_unique = names.insert(name).second && is_unique;
      if (const api::Problems problems = api::CheckDns1035Label(name); !problems.empty()) {
        errors_.push_back(FieldError::Invalid(at.Child("name"), name, Join(problems, ",")));
      }
      CheckDeprecation(version, at);
      Value same;
      for (Value other : before["versions"].elements()) {
        if (other["name"].str() == name) same = other;
      }
      CheckVersion(version, same, at);
    }
    if (!is_unique) {
      errors_.push_back(
          FieldError::Invalid(versions, spec["versions"], "must contain unique version names"));
    }
    if (stored != 1) {
      errors_.push_back(FieldError::Invalid(
          versions, spec["versions"], "must have exactly one version marked as storage version"));
    }
  }

  void CheckDeprecation(Value version, const FieldPath& path) {
    const Value warning = version["deprecationWarning"];
    if (!warning.has_value()) return;
    const FieldPath at = path.Child("deprecationWarning");
    if (!version["deprecated"].boolean()) {
      errors_.push_back(
          FieldError::Invalid(at, warning, "can only be set for deprecated versions"));
    } else if (warning.str().size() > kMaxWarningBytes) {
      errors_.push_back(FieldError::Invalid(at, warning, "must be <= 256 characters long"));
    } else if (warning.str().empty()) {
      errors_.push_back(FieldError::Invalid(at, warning, "must not be an empty string"));
    } else if (std::ranges::any_of(warning.str(), [](char c) {
                 return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
               })) {
      errors_.push_back(
          FieldError::Invalid(at, warning, "must only contain printable UTF-8 characters"));
    }
  }

  void CheckVersion(Value version, Value before, const FieldPath& path) {
    const FieldPath at = path.Child("schema").Child("openAPIV3Schema");
    const Value source = version["schema"]["openAPIV3Schema"];
    if (!source.has_value()) {
      errors_.push_back(FieldError::Required(at, ""));
      return;
    }
    FieldErrors found;
    const JsonSchema schema = ReadJsonSchema(source, at, found);
    const bool unchanged =
        before.exists() && api::Equal(source, before["schema"]["openAPIV3Schema"]);
    if (!unchanged) {
      errors_.Append(std::move(found));
      if (WorkBudget::IsExceeded()) return;
      CheckDefaults(schema, at);
      if (schema.has_rules) CustomRules(schema).CheckDefinition(errors_, at);
    }
    CheckScale(version["subresources"]["scale"], path.Child("subresources"));
    CheckColumns(version["additionalPrinterColumns"], path.Child("additionalPrinterColumns"));
    CheckSelectable(version["selectableFields"], schema, path.Child("selectableFields"));
  }

  // A default must itself be valid.
  void CheckDefaults(const JsonSchema& schema, const FieldPath& path) {
    if (!schema.has_defaults) return;
    if (schema.default_value.exists()) {
      CheckJsonValue(errors_, path.Child("default"), schema.default_value, Value(), schema);
    }
    for (const auto& [name, below] : schema.properties) {
      CheckDefaults(*below, path.Child("properties").Key(name));
    }
    if (schema.items != nullptr) CheckDefaults(*schema.items, path.Child("items"));
    if (schema.additional != nullptr) {
      CheckDefaults(*schema.additional, path.Child("additionalProperties"));
    }
  }

  void CheckScalePath(Value scale, api::FieldName name, const FieldPath& path, bool needed,
                      std::vector<std::string_view> roots, std::string_view where) {
    const std::string_view text = scale[name].str();
    const FieldPath at = path.Child(StrCat("scale.", name.view()));
    if (text.empty()) {
      if (needed) errors_.push_back(FieldError::Required(at, ""));
    } else if (text[0] != '.') {
      errors_.push_back(
          FieldError::Invalid(at, text, "must be a simple json path starting with ."));
    } else if (std::ranges::none_of(
                   roots, [&](std::string_view root) { return text.starts_with(root); })) {
      errors_.push_back(
          FieldError::Invalid(at, text, StrCat("should be a json path under ", where)));
    }
  }
  void CheckScale(Value scale, const FieldPath& path) {
    if (!scale.has_value()) return;
    CheckScalePath(scale, "specReplicasPath", path, true, {".spec."}, ".spec");
    CheckScalePath(scale, "statusReplicasPath", path, true, {".status."}, ".status");
    CheckScalePath(scale, "labelSelectorPath", path, false, {".spec.", ".status."},
                   "either .spec or .status");
  }

  void CheckColumns(Value columns, const FieldPath& path) {
    constexpr std::string_view kTypes = "boolean,date,integer,number,string";
    std::size_t index = 0;
    for (Value column : columns.elements()) {
      const FieldPath at = path.Index(index++);
      if (column["name"].str().empty()) {
        errors_.push_back(FieldError::Required(at.Child("name"), ""));
      }
      const std::string_view type = column["type"].str();
      if (type.empty()) {
        errors_.push_back(
            FieldError::Required(at.Child("type"), StrCat("must be one of ", kTypes)));
      } else if (type != "boolean" && type != "date" && type != "integer" && type != "number" &&
                 type != "string") {
        errors_.push_back(
            FieldError::Invalid(at.Child("type"), type, StrCat("must be one of ", kTypes)));
      }
      const std::string_view json_path = column["jsonPath"].str();
      if (json_path.empty()) {
        errors_.push_back(FieldError::Required(at.Child("JSONPath"), ""));
      } else if (json_path[0] != '.') {
        errors_.push_back(FieldError::Invalid(at.Child("JSONPath"), json_path,
                                              "must be a simple json path starting with ."));
      } else if (const Result<api::JsonPath> parsed = api::JsonPath::ParsePath(json_path);
                 !parsed.ok()) {
        errors_.push_back(
            FieldError::Invalid(at.Child("JSONPath"), json_path, parsed.error().message));
      }
    }
  }

  void CheckSelectable(Value fields, const JsonSchema& schema, const FieldPath& path) {
    std::set<std::string_view> seen;
    std::size_t index = 0;
    for (Value field : fields.elements()) {
      const FieldPath at = path.Index(index++).Child("jsonPath");
      const std::string_view text = field["jsonPath"].str();
      if (text.empty()) {
        errors_.push_back(FieldError::Required(at, ""));
        continue;
      }
      const JsonSchema* found = &schema;
      std::string_view rest = text.starts_with('.') ? text.substr(1) : std::string_view();
      if (rest.starts_with("metadata")) {
        errors_.push_back(FieldError::Invalid(at, text, "must not point to fields in metadata"));
        continue;
      }
      for (std::string_view part : Split(rest, '.')) {
        found = found == nullptr ? nullptr : found->Find(part);
      }
      if (rest.empty() || found == nullptr) {
        errors_.push_back(FieldError::Invalid(
            at, text, StrCat("is an invalid path: does not refer to a valid field")));
      } else if (found->type != JsonSchema::Type::kString &&
                 found->type != JsonSchema::Type::kBoolean &&
                 found->type != JsonSchema::Type::kInteger) {
        errors_.push_back(
            FieldError::Invalid(at, text,
                                "must point to a field of type string, boolean or integer. Enum "
                                "string fields and strings with formats are allowed."));
      }
      if (!seen.insert(text).second) errors_.push_back(FieldError::Duplicate(at, text));
    }
    if (seen.size() > kMaxSelectableFields) {
      errors_.push_back(FieldError::TooMany(path, seen.size(), kMaxSelectableFields));
    }
  }

  void CheckConversionWebhook(Value webhook, const FieldPath& at) {
    const Value client = webhook["clientConfig"];
    const FieldPath where = at.Child("webhookClientConfig");
    if (!client.has_value()) {
      errors_.push_back(FieldError::Required(where, "required when strategy is set to Webhook"));
    } else if (client["url"].has_value() == client["service"].has_value()) {
      errors_.push_back(FieldError::Required(where, "exactly one of url or service is required"));
    } else if (client["url"].has_value()) {
      CheckWebhookUrl(errors_, where.Child("url"), client["url"].str());
    } else {
      CheckWebhookService(errors_, where.Child("service"), client["service"]);
    }
    const Value versions = webhook["conversionReviewVersions"];
    const FieldPath versions_path = at.Child("conversionReviewVersions");
    bool is_known = false;
    for (Value each : versions.elements()) {
      is_known = is_known || each.str() == "v1" || each.str() == "v1beta1";
    }
    if (versions.empty()) {
      errors_.push_back(FieldError::Required(versions_path, ""));
    } else if (!is_known) {
      errors_.push_back(
          FieldError::Invalid(versions_path, versions, "must include at least one of v1, v1beta1"));
    }
  }

  void CheckConversion(Value spec, const FieldPath& path) {
    const Value conversion = spec["conversion"];
    const FieldPath at = path.Child("conversion");
    const std::string_view strategy = conversion["strategy"].str();
    if (strategy == "Webhook") return CheckConversionWebhook(conversion["webhook"], at);
    if (strategy != "None") {
      errors_.push_back(
          FieldError::NotSupported(at.Child("strategy"), strategy, {"None", "Webhook"}));
    } else if (conversion["webhook"]["clientConfig"].has_value()) {
      errors_.push_back(
          FieldError::Forbidden(at.Child("webhookClientConfig"),
                                "should not be set when strategy is not set to Webhook"));
    }
  }

  void CheckUnchanged(Value definition, Value before) {
    const Value now = definition["spec"];
    const Value then = before["spec"];
    const FieldPath path("spec");
    const auto check = [&](Value a, Value b, const FieldPath& at) {
      if (!api::Equal(a, b)) {
        errors_.push_back(FieldError::Invalid(at, a, std::string(kImmutable)));
      }
    };
    bool established = false;
    for (Value condition : before["status"]["conditions"].elements()) {
      established = established || (condition["type"].str() == "Established" &&
                                    condition["status"].str() == "True");
    }
    if (established) {
      check(now["scope"], then["scope"], path.Child("scope"));
      check(now["names"]["kind"], then["names"]["kind"], path.Child("names").Child("kind"));
    }
    check(now["group"], then["group"], path.Child("group"));
    check(now["names"]["plural"], then["names"]["plural"], path.Child("names").Child("plural"));
    CheckStoredVersions(definition);
  }

  void CheckStoredVersions(Value definition) {
    const Value stored = definition["status"]["storedVersions"];
    const FieldPath at = FieldPath("status").Child("storedVersions");
    if (stored.empty()) {
      errors_.push_back(FieldError::Invalid(at, stored, "must have at least one stored version"));
      return;
    }
    const Value versions = definition["spec"]["versions"];
    std::size_t index = 0;
    for (Value each : stored.elements()) {
      const FieldPath here = at.Index(index++);
      const std::string_view name = each.str();
      bool is_there = false;
      for (Value version : versions.elements()) {
        is_there = is_there || version["name"].str() == name;
      }
      if (is_there) continue;
      errors_.push_back(FieldError::Invalid(
          here, name,
          StrCat("missing from spec.versions; ", name,
                 " was previously a storage version, and must remain in spec.versions until a "
                 "storage migration ensures no data remains persisted in ",
                 name, " and removes ", name, " from status.storedVersions")));
    }
  }

  FieldErrors errors_;
};

}  // namespace

FieldErrors ValidateDefinition(Value definition, Value before) {
  return DefinitionChecker().Check(definition, before);
}

}  // namespace drakkar::apiserver
