#include "apiserver/validation/projected_volume.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "api/meta/quantity.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/schema_rules.h"
#include "apiserver/validation/value_rules.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::FieldPath;
using api::Value;

// Checks the sources of one projected volume, which must not write the same file.
class SourcesChecker {
 public:
  // `path` is the volume's.
  SourcesChecker(FieldErrors& errors, const FieldPath& path) : errors_(errors), path_(path) {}

  void Check(const FieldPath& path, Value source) {
    std::size_t count = 0;
    const auto check = [&](api::FieldName field, auto method) {
      if (!source[field].has_value()) return;
      ++count;
      (this->*method)(path.Child(field.view()), source[field]);
    };
    check("secret", &SourcesChecker::CheckKeys);
    check("configMap", &SourcesChecker::CheckKeys);
    check("downwardAPI", &SourcesChecker::CheckDownward);
    check("serviceAccountToken", &SourcesChecker::CheckToken);
    check("clusterTrustBundle", &SourcesChecker::CheckTrustBundle);
    check("podCertificate", &SourcesChecker::CheckCertificate);
    if (count > 1) {
      errors_.push_back(Forbidden(path, "may not specify more than 1 volume type per source"));
    }
  }

 private:
  void Take(std::string_view file, std::string_view shown) {
    if (files_.insert(file).second) return;
    errors_.push_back(Invalid(path_, shown, "conflicting duplicate paths"));
  }

  void CheckKeys(const FieldPath& path, Value source) {
    RequireText(errors_, path.Child("name"), source["name"].str());
    CheckKeysToPaths(errors_, path.Child("items"), source["items"]);
    for (const Value item : source["items"].elements()) {
      if (!item["path"].str().empty()) Take(item["path"].str(), source["name"].str());
    }
  }

  void CheckDownward(const FieldPath& path, Value source) {
    for (const Value file : source["items"].elements()) {
      if (WorkBudget::IsExceeded()) return;
      CheckDownwardFile(errors_, path, file);
      if (!file["path"].str().empty()) Take(file["path"].str(), file["path"].str());
    }
  }

  void CheckToken(const FieldPath& path, Value source) {
    constexpr std::int64_t kMinSeconds = 600;
    constexpr std::int64_t kMaxSeconds = std::int64_t{1} << 32;
    const FieldPath expiration = path.Child("expirationSeconds");
    const Value seconds = source["expirationSeconds"];
    if (!seconds.has_value()) {
      errors_.push_back(Required(expiration));
    } else if (seconds.integer() < kMinSeconds) {
      errors_.push_back(Invalid(expiration, seconds.integer(),
                                "may not specify a duration less than 10 minutes"));
    } else if (seconds.integer() > kMaxSeconds) {
      errors_.push_back(Invalid(expiration, seconds.integer(),
                                "may not specify a duration larger than 2^32 seconds"));
    }
    const std::string_view file = source["path"].str();
    if (file.empty()) {
      errors_.push_back(Required(path_.Child("path")));
    } else {
      CheckVolumeFile(errors_, path_.Child("path"), file);
    }
    CheckUserOrGroupId(errors_, path.Child("user"), source["user"]);
  }

  void CheckTrustBundle(const FieldPath& path, Value source) {
    const Value name = source["name"];
    const Value signer = source["signerName"];
    const Value selector = source["labelSelector"];
    if (name.has_value() && signer.has_value()) {
      errors_.push_back(Invalid(path, source, "only one of name and signerName may be used"));
    } else if (name.has_value()) {
      CheckBundleName(path.Child("name"), name.str());
      if (selector.has_value()) {
        errors_.push_back(Invalid(path.Child("labelSelector"), selector,
                                  "labelSelector must be unset if name is specified"));
      }
    } else if (signer.has_value()) {
      if (signer.str().empty()) {
        errors_.push_back(Required(path.Child("signerName"), "must be a valid signer name"));
      }
      CheckSignerName(errors_, path.Child("signerName"), signer.str());
      if (selector.has_value()) {
        CheckLabelSelector(errors_, path.Child("labelSelector"), selector);
      }
    } else {
      errors_.push_back(Required(path, "either name or signerName must be specified"));
    }
    const std::string_view file = source["path"].str();
    RequireText(errors_, path.Child("path"), file);
    CheckUserOrGroupId(errors_, path.Child("user"), source["user"]);
    CheckVolumeFile(errors_, path.Child("path"), file);
    Take(file, file);
  }

  void CheckBundleName(const FieldPath& path, std::string_view name) {
    if (name.empty()) errors_.push_back(Required(path, "must be a valid object name"));
    const std::size_t colon = name.rfind(':');
    std::string signer(name.substr(0, colon == std::string_view::npos ? 0 : colon));
    std::ranges::replace(signer, ':', '/');
    for (const std::string& problem : TrustBundleNameProblems(signer, name)) {
      errors_.push_back(
          Invalid(path, name, StrCat("not a valid clustertrustbundlename: ", problem)));
    }
  }

  void CheckCertificate(const FieldPath& path, Value source) {
    constexpr std::int64_t kMinSeconds = 3'600;
    constexpr std::int64_t kMaxSeconds = 91 * 24 * 3'600;
    constexpr std::int64_t kMaxSecondsOfKubernetes = 24 * 3'600;
    const std::string_view signer = source["signerName"].str();
    CheckSignerName(errors_, path.Child("signerName"), signer);
    for (const auto& [key, name, value] : source["userAnnotations"].members()) {
      if (WorkBudget::IsExceeded()) return;
      CheckUserAnnotation(path.Child("userAnnotations"), ToLower(name));
    }
    CheckUserOrGroupId(errors_, path.Child("user"), source["user"]);
    CheckOneOf(errors_, path.Child("keyType"), source["keyType"].str(),
               {"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"});
    if (const Value seconds = source["maxExpirationSeconds"]; seconds.has_value()) {
      const FieldPath at = path.Child("maxExpirationSeconds");
      const std::int64_t most = IsKubernetesSigner(signer) ? kMaxSecondsOfKubernetes : kMaxSeconds;
      if (seconds.integer() < kMinSeconds) {
        errors_.push_back(
            Invalid(at, seconds.integer(),
                    StrCat("if provided, maxExpirationSeconds must be >= ", kMinSeconds)));
      }
      if (seconds.integer() > most) {
        errors_.push_back(Invalid(at, seconds.integer(),
                                  StrCat("if provided, maxExpirationSeconds must be <= ", most)));
      }
    }
    bool any = false;
    for (const api::FieldName field :
         api::FieldNames{"credentialBundlePath", "keyPath", "certificateChainPath"}) {
      const std::string_view file = source[field].str();
      if (file.empty()) continue;
      any = true;
      CheckVolumeFile(errors_, path.Child(field.view()), file);
      Take(file, file);
    }
    if (any) return;
    errors_.push_back(Required(
        path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"));
  }

  void CheckUserAnnotation(const FieldPath& path, std::string_view key) {
    const api::Problems problems = api::CheckLabelKey(key);
    AddProblems(errors_, path, key, problems);
    if (!problems.empty() || key.find('/') != std::string_view::npos) return;
    errors_.push_back(
        Invalid(path, key, "must be a domain-prefixed key (such as \"acme.io/foo\")"));
  }

  FieldErrors& errors_;
  const FieldPath path_;
  std::set<std::string_view> files_;
};

// "metadata.labels['a']": the parts before and within the brackets.
struct Subscript {
  std::string_view path;
  std::string_view key;
};
std::optional<Subscript> SplitSubscript(std::string_view text) {
  if (!text.ends_with("']")) return std::nullopt;
  text.remove_suffix(2);
  const std::size_t bracket = text.find("['");
  if (bracket == std::string_view::npos || bracket == 0) return std::nullopt;
  return Subscript{text.substr(0, bracket), text.substr(bracket + 2)};
}

bool IsAmong(const std::vector<std::string_view>& texts, std::string_view text) {
  return std::ranges::find(texts, text) != texts.end();
}

const std::vector<std::string_view>& FieldsFor(FieldUse use) {
  static const std::vector<std::string_view> variables = {"metadata.name",
                                                          "metadata.namespace",
                                                          "metadata.uid",
                                                          "spec.nodeName",
                                                          "spec.serviceAccountName",
                                                          "status.hostIP",
                                                          "status.hostIPs",
                                                          "status.podIP",
                                                          "status.podIPs"};
  static const std::vector<std::string_view> files = {"metadata.name", "metadata.namespace",
                                                      "metadata.labels", "metadata.annotations",
                                                      "metadata.uid"};
  return use == FieldUse::kFile ? files : variables;
}

// Fields that exist, though not every use allows each of them.
bool IsKnownField(std::string_view field) {
  static const std::vector<std::string_view> others = {"metadata.annotations", "metadata.labels",
                                                       "spec.restartPolicy", "spec.schedulerName",
                                                       "status.phase"};
  return IsAmong(others, field) || IsAmong(FieldsFor(FieldUse::kVariable), field);
}

bool IsHugePageField(std::string_view resource) {
  return resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-");
}

void CheckDivisor(FieldErrors& errors, const FieldPath& path, std::string_view resource,
                  Value divisor) {
  const auto quantity = api::Quantity::Parse(divisor.str());
  if (!quantity.ok() || quantity->IsZero()) return;
  const std::string text = quantity->ToString();
  if (resource.ends_with(".cpu")) {
    if (text == "1" || text == "1m") return;
    errors.push_back(Invalid(path, resource,
                             "only divisor's values 1m and 1 are supported with the cpu resource"));
    return;
  }
  std::string_view what;
  if (resource.ends_with(".memory")) what = "memory";
  if (resource.ends_with(".ephemeral-storage")) what = "local ephemeral storage";
  if (IsHugePageField(resource)) what = "hugepages";
  static const std::vector<std::string_view> units = {"1",   "1k",  "1M",  "1G",  "1T",  "1P", "1E",
                                                      "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"};
  if (what.empty() || IsAmong(units, text)) return;
  errors.push_back(Invalid(path, resource,
                           StrCat("only divisor's values ", Join(units, ", "),
                                  " are supported with the ", what, " resource")));
}

}  // namespace

void CheckFileOwner(FieldErrors& errors, const FieldPath& path, Value volume) {
  CheckFileMode(errors, path.Child("defaultMode"), volume["defaultMode"]);
  CheckUserOrGroupId(errors, path.Child("defaultUser"), volume["defaultUser"]);
}

void CheckKeysToPaths(FieldErrors& errors, const FieldPath& path, Value items) {
  std::size_t index = 0;
  for (const Value item : items.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    RequireText(errors, at.Child("key"), item["key"].str());
    RequireText(errors, at.Child("path"), item["path"].str());
    CheckVolumeFile(errors, at.Child("path"), item["path"].str());
    CheckFileMode(errors, at.Child("mode"), item["mode"]);
    CheckUserOrGroupId(errors, at.Child("user"), item["user"]);
  }
}

void CheckDownwardFile(FieldErrors& errors, const FieldPath& path, Value file) {
  RequireText(errors, path.Child("path"), file["path"].str());
  CheckVolumeFile(errors, path.Child("path"), file["path"].str());
  const Value field = file["fieldRef"];
  const Value resource = file["resourceFieldRef"];
  if (field.has_value()) {
    CheckFieldSelector(errors, path.Child("fieldRef"), field, FieldUse::kFile);
    if (resource.has_value()) {
      errors.push_back(Invalid(path, "resource",
                               "fieldRef and resourceFieldRef can not be specified "
                               "simultaneously"));
    }
  } else if (resource.has_value()) {
    CheckResourceSelector(errors, path.Child("resourceFieldRef"), resource, FieldUse::kFile);
  } else {
    errors.push_back(Required(path, "one of fieldRef and resourceFieldRef is required"));
  }
  CheckFileMode(errors, path.Child("mode"), file["mode"]);
  CheckUserOrGroupId(errors, path.Child("user"), file["user"]);
}

void CheckProjectedVolume(FieldErrors& errors, const FieldPath& path, Value volume) {
  CheckFileOwner(errors, path, volume);
  SourcesChecker checker(errors, path);
  std::size_t index = 0;
  for (const Value source : volume["sources"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    checker.Check(path.Child("sources").Index(index++), source);
  }
}

void CheckFieldSelector(FieldErrors& errors, const FieldPath& path, Value selector, FieldUse use) {
  const std::string_view version = selector["apiVersion"].str();
  std::string_view field = selector["fieldPath"].str();
  if (version.empty() || field.empty()) {
    errors.push_back(Required(path.Child(version.empty() ? "apiVersion" : "fieldPath")));
    return;
  }
  const auto refuse = [&](std::string_view why) {
    errors.push_back(Invalid(path.Child("fieldPath"), field,
                             StrCat("error converting fieldPath: ", why, field)));
  };
  if (version != "v1") {
    errors.push_back(
        Invalid(path.Child("fieldPath"), field,
                StrCat("error converting fieldPath: unsupported pod version: ", version)));
    return;
  }
  if (const std::optional<Subscript> subscript = SplitSubscript(field)) {
    if (subscript->path == "metadata.annotations") {
      const std::string key = ToLower(subscript->key);
      AddProblems(errors, path, key, api::CheckLabelKey(key));
    } else if (subscript->path == "metadata.labels") {
      AddProblems(errors, path, subscript->key, api::CheckLabelKey(subscript->key));
    } else {
      refuse("field label does not support subscript: ");
    }
    return;
  }
  if (field == "spec.host") field = "spec.nodeName";
  if (!IsKnownField(field)) {
    refuse("field label not supported: ");
  } else if (!IsAmong(FieldsFor(use), field)) {
    errors.push_back(NotSupported(path.Child("fieldPath"), field, FieldsFor(use)));
  }
}

void CheckResourceSelector(FieldErrors& errors, const FieldPath& path, Value selector,
                           FieldUse use) {
  static const std::vector<std::string_view> resources = {
      "limits.cpu",   "limits.ephemeral-storage",   "limits.memory",
      "requests.cpu", "requests.ephemeral-storage", "requests.memory"};
  const std::string_view resource = selector["resource"].str();
  if (use == FieldUse::kFile && selector["containerName"].str().empty()) {
    errors.push_back(Required(path.Child("containerName")));
  } else if (resource.empty()) {
    errors.push_back(Required(path.Child("resource")));
  } else if (!IsAmong(resources, resource) && !IsHugePageField(resource)) {
    errors.push_back(NotSupported(path.Child("resource"), resource, resources));
  }
  if (IsAmong(resources, resource) || IsHugePageField(resource)) {
    CheckDivisor(errors, path.Child("divisor"), resource, selector["divisor"]);
  }
}

}  // namespace drakkar::apiserver
