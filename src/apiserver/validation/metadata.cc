#include "apiserver/validation/metadata.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>

#include "api/meta/finalizers.h"
#include "api/meta/shown_errors.h"
#include "apiserver/validation/name_rules.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldError;
using api::FieldPath;
using api::Problems;
using api::Value;

constexpr std::size_t kMaxAnnotationsBytes = 256 * 1024;
constexpr std::size_t kMaxSubresourceBytes = 256;
constexpr std::string_view kStandardFinalizers[] = {"kubernetes", api::kOrphanFinalizer,
                                                    api::kForegroundFinalizer};

// The prefix of a generated name may end in a dash, because characters follow.
std::string WithoutTrailingDash(std::string_view name, bool prefix) {
  std::string masked(name);
  if (prefix && masked.size() > 1 && masked.back() == '-') {
    masked[masked.size() - 2] = 'a';
    masked.pop_back();
  }
  return masked;
}

void CheckOwner(Findings& out, const FieldPath& path, Value owner) {
  const std::string_view api_version = owner["apiVersion"].str();
  const std::size_t slashes = static_cast<std::size_t>(std::ranges::count(api_version, '/'));
  if (api_version.empty()) {
    out.Add(FieldError::Required(path.Child("apiVersion"), "must not be empty"), {}, Covered::kYes);
  } else if (slashes > 1 || api_version.ends_with('/')) {
    out.Add(FieldError::Invalid(path.Child("apiVersion"), api_version,
                                "must be <group>/<version> or <version>"));
  }
  for (const api::FieldName field : api::FieldNames{"kind", "name", "uid"}) {
    if (owner[field].str().empty()) {
      out.Add(FieldError::Required(path.Child(field), "must not be empty"), {}, Covered::kYes);
    }
  }
  if (api_version == "v1" && owner["kind"].str() == "Event") {
    out.Add(FieldError::Invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"));
  }
}

void CheckOwners(Findings& out, const FieldPath& path, Value owners) {
  std::string controller;
  bool told = false;
  std::size_t index = 0;
  for (const Value owner : owners.elements()) {
    if (Findings::IsFull()) return;
    CheckOwner(out, path.Index(index++), owner);
    if (!owner["controller"].boolean()) continue;
    const std::string name = StrCat(owner["kind"].str(), "/", owner["name"].str());
    if (controller.empty()) {
      controller = name;
    } else if (!told || owners.size() <= api::kMaxShownErrors) {
      // Each error shows the whole list, so it is reported only once for a long one.
      told = true;
      out.Add(FieldError::Invalid(path, owners,
                                  StrCat("Only one reference can have Controller set to true. "
                                         "Found \"true\" in references for ",
                                         controller, " and ", name)));
    }
  }
}

bool Contains(Value list, std::string_view text) {
  for (const Value item : list.elements()) {
    if (item.str() == text) return true;
  }
  return false;
}

void CheckFinalizerNames(Findings& out, const FieldPath& path, Value finalizers) {
  for (const Value finalizer : finalizers.elements()) {
    if (Findings::IsFull()) return;
    out.AddProblems(path, finalizer.str(), api::CheckLabelKey(finalizer.str()));
  }
  if (Contains(finalizers, api::kOrphanFinalizer) &&
      Contains(finalizers, api::kForegroundFinalizer)) {
    out.Add(FieldError::Invalid(path, finalizers,
                                "finalizer orphan and foregroundDeletion cannot be both set"));
  }
}

void CheckKnownFinalizers(Findings& out, const FieldPath& path, Value finalizers) {
  std::size_t index = 0;
  for (const Value finalizer : finalizers.elements()) {
    if (Findings::IsFull()) return;
    const std::string_view name = finalizer.str();
    if (name.find('/') == std::string_view::npos &&
        std::ranges::find(kStandardFinalizers, name) == std::end(kStandardFinalizers)) {
      out.Add(FieldError::Invalid(
          path.Index(index), name,
          "name is neither a standard finalizer name nor is it fully qualified"));
    }
    ++index;
  }
}

void CheckManagedFields(Findings& out, const FieldPath& path, Value entries) {
  std::size_t index = 0;
  for (const Value entry : entries.elements()) {
    if (Findings::IsFull()) return;
    const FieldPath at = path.Index(index++);
    const std::string_view operation = entry["operation"].str();
    if (operation.empty()) {
      out.Add(FieldError::Required(at.Child("operation"), "must not be empty"), {}, Covered::kYes);
    } else if (operation != "Apply" && operation != "Update") {
      out.Add(FieldError::NotSupported(at.Child("operation"), operation, {"Apply", "Update"}), {},
              Covered::kYes);
    }
    if (const std::string_view type = entry["fieldsType"].str();
        !type.empty() && type != "FieldsV1") {
      out.Add(FieldError::Invalid(at.Child("fieldsType"), type, "must be `FieldsV1`"));
    }
    CheckManager(out, at.Child("manager"), entry["manager"].str());
    if (entry["subresource"].str().size() > kMaxSubresourceBytes) {
      out.Add(FieldError::TooLong(at.Child("subresource"), kMaxSubresourceBytes));
    }
  }
}

void CheckGeneration(Findings& out, const FieldPath& path, Value metadata) {
  if (const std::int64_t generation = metadata["generation"].integer(); generation < 0) {
    out.Add(FieldError::Invalid(path.Child("generation"), generation,
                                "must be greater than or equal to 0"),
            "minimum", Covered::kYes);
  }
}

void CheckName(Findings& out, const FieldPath& path, Value metadata, const MetadataRules& rules) {
  const std::string_view name = metadata["name"].str();
  const std::string_view generate = metadata["generateName"].str();
  if (rules.name_is_declared) {
    if (!generate.empty() && name.empty()) {
      out.Add(FieldError::Internal(
          path.Child("name"),
          StrCat("generateName was specified (", Quote(generate), "), but no name was generated")));
    }
  } else if (!generate.empty()) {
    out.AddProblems(path.Child("generateName"), generate, rules.check_name(generate, true));
  }
  if (name.empty()) {
    out.Add(FieldError::Required(path.Child("name"), "name or generateName is required"));
  } else if (rules.name_is_declared) {
    Findings declared;
    DeclareLongName(declared, path.Child("name"), name, false);
    for (Finding& finding : declared.list()) {
      out.Add(std::move(finding.error), finding.origin);
    }
  } else {
    out.AddProblems(path.Child("name"), name, rules.check_name(name, false));
  }
}

void CheckSame(Findings& out, const FieldPath& path, Value object, Value before,
               api::FieldName field, bool declared) {
  const Value value = object[field];
  const Value old = before[field];
  if (api::Equal(value, old) || (!value.has_value() && !old.has_value())) return;
  api::BadValue shown = value.has_value() ? api::BadValue(value) : api::BadValue(nullptr);
  if (!value.has_value() && old.is_string() && field != "deletionTimestamp" &&
      field != "creationTimestamp") {
    shown = "";
  }
  // Times are shown as in JSON, with quotes.
  if (value.is_string() && field.view().ends_with("Timestamp")) {
    shown = api::BadValue::Literal(Quote(value.str()));
  }
  out.Add(FieldError::Invalid(path.Child(field), std::move(shown), "field is immutable"),
          declared ? "immutable" : "", declared ? Covered::kYes : Covered::kNo);
}

}  // namespace

void CheckManager(Findings& out, const FieldPath& path, std::string_view manager) {
  if (manager.size() > kMaxManagerBytes) out.Add(FieldError::TooLong(path, kMaxManagerBytes));
  std::size_t position = 0;
  for (const char c : manager) {
    if (Findings::IsFull()) return;
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      constexpr std::string_view kHex = "0123456789ABCDEF";
      out.Add(FieldError::Invalid(path, manager,
                                  StrCat("invalid character U+00", kHex[byte >> 4], kHex[byte & 15],
                                         " (at position ", position, ")")));
    }
    ++position;
  }
}

Problems PathSegmentProblems(std::string_view name, bool prefix) {
  Problems problems;
  if (!prefix) {
    if (name == "." || name == "..") return {StrCat("may not be '", name, "'")};
  }
  for (const char c : {'/', '%'}) {
    if (name.find(c) != std::string_view::npos) {
      problems.push_back(StrCat("may not contain '", c, "'"));
    }
  }
  return problems;
}

Problems SubdomainNameProblems(std::string_view name, bool prefix) {
  return DnsSubdomainProblems(WithoutTrailingDash(name, prefix));
}

Problems LabelNameProblems(std::string_view name, bool prefix) {
  return DnsLabelProblems(WithoutTrailingDash(name, prefix));
}

Problems Dns1035NameProblems(std::string_view name, bool prefix) {
  return api::CheckDns1035Label(WithoutTrailingDash(name, prefix));
}

void CheckLabels(Findings& out, const FieldPath& path, Value labels) {
  for (const auto& [key, name, value] : labels.members()) {
    if (Findings::IsFull()) return;
    CheckLabelKeyName(out, path, name);
    out.AddProblems(path, value.str(), api::CheckLabelValue(value.str()), "format=k8s-label-value");
  }
}

void CheckAnnotations(Findings& out, const FieldPath& path, Value annotations) {
  std::size_t total = 0;
  for (const auto& [key, name, value] : annotations.members()) {
    if (Findings::IsFull()) return;
    out.AddProblems(path, name, api::CheckLabelKey(ToLower(name)), "format=k8s-label-key");
    total += name.size() + value.str().size();
  }
  if (total > kMaxAnnotationsBytes) out.Add(FieldError::TooLong(path, kMaxAnnotationsBytes));
}

Findings CheckMetadata(Value object, const MetadataRules& rules) {
  Findings out;
  const FieldPath path("metadata");
  const Value metadata = object["metadata"];
  CheckName(out, path, metadata, rules);
  const std::string_view name_space = metadata["namespace"].str();
  if (!rules.namespaced) {
    if (!name_space.empty()) {
      out.Add(FieldError::Forbidden(path.Child("namespace"), "not allowed on this type"));
    }
  } else if (name_space.empty()) {
    out.Add(FieldError::Required(path.Child("namespace"), ""));
  } else {
    out.AddProblems(path.Child("namespace"), name_space, DnsLabelProblems(name_space));
  }
  CheckGeneration(out, path, metadata);
  CheckLabels(out, path.Child("labels"), metadata["labels"]);
  CheckAnnotations(out, path.Child("annotations"), metadata["annotations"]);
  CheckOwners(out, path.Child("ownerReferences"), metadata["ownerReferences"]);
  CheckFinalizerNames(out, path.Child("finalizers"), metadata["finalizers"]);
  CheckManagedFields(out, path.Child("managedFields"), metadata["managedFields"]);
  if (rules.known_finalizers) {
    CheckKnownFinalizers(out, path.Child("finalizers"), metadata["finalizers"]);
  }
  return out;
}

Findings CheckMetadataUpdate(Value object, Value before, bool known_finalizers) {
  Findings out;
  const FieldPath path("metadata");
  const Value metadata = object["metadata"];
  const Value old = before["metadata"];
  if (old["deletionTimestamp"].has_value()) {
    std::unordered_set<std::string_view> had;
    for (const Value finalizer : old["finalizers"].elements()) had.insert(finalizer.str());
    std::set<std::string> added;
    for (const Value finalizer : metadata["finalizers"].elements()) {
      if (!had.contains(finalizer.str())) added.insert(Quote(finalizer.str()));
      if (added.size() == api::kMaxShownErrors) break;
    }
    if (!added.empty()) {
      out.Add(FieldError::Forbidden(path.Child("finalizers"),
                                    StrCat("no new finalizers can be added if the object is being "
                                           "deleted, found new finalizers []string{",
                                           Join(added, ", "), "}")));
    }
  }
  if (metadata["resourceVersion"].str().empty()) {
    out.Add(
        FieldError::Invalid(path.Child("resourceVersion"), "", "must be specified for an update"));
  }
  CheckGeneration(out, path, metadata);
  if (metadata["generation"].integer() < old["generation"].integer()) {
    out.Add(FieldError::Invalid(path.Child("generation"), metadata["generation"].integer(),
                                "must not be decremented"));
  }
  for (const api::FieldName field : api::FieldNames{"name", "namespace"}) {
    CheckSame(out, path, metadata, old, field, false);
  }
  for (const api::FieldName field : api::FieldNames{"uid", "creationTimestamp", "deletionTimestamp",
                                                    "deletionGracePeriodSeconds"}) {
    CheckSame(out, path, metadata, old, field, true);
  }
  CheckLabels(out, path.Child("labels"), metadata["labels"]);
  CheckAnnotations(out, path.Child("annotations"), metadata["annotations"]);
  CheckOwners(out, path.Child("ownerReferences"), metadata["ownerReferences"]);
  CheckManagedFields(out, path.Child("managedFields"), metadata["managedFields"]);
  if (known_finalizers) {
    CheckKnownFinalizers(out, path.Child("finalizers"), metadata["finalizers"]);
  }
  return out;
}

}  // namespace drakkar::apiserver
