#include "apiserver/registry/rbac_strategy.h"

#include <algorithm>

#include "apiserver/validation/cause.h"
#include "apiserver/validation/metadata.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

bool IsBinding(api::Value object) {
  return object["kind"].str().ends_with("Binding");
}

void CheckRules(api::Value object, api::FieldErrors& errors) {
  const bool namespaced = object["kind"].str() == "Role";
  std::size_t index = 0;
  for (const api::Value rule : object["rules"].elements()) {
    const std::string path = StrCat("rules[", index++, "]");
    if (rule["verbs"].empty()) {
      errors.push_back(Required(path + ".verbs", "verbs must contain at least one value"));
    }
    if (const api::Value urls = rule["nonResourceURLs"]; !urls.empty()) {
      if (namespaced) {
        errors.push_back(Invalid(path + ".nonResourceURLs", urls,
                                 "namespaced rules cannot apply to non-resource URLs"));
      }
      if (!rule["apiGroups"].empty() || !rule["resources"].empty() ||
          !rule["resourceNames"].empty()) {
        errors.push_back(
            Invalid(path + ".nonResourceURLs", urls,
                    "rules cannot apply to both regular resources and non-resource URLs"));
      }
      continue;
    }
    if (rule["apiGroups"].empty()) {
      errors.push_back(
          Required(path + ".apiGroups", "resource rules must supply at least one api group"));
    }
    if (rule["resources"].empty()) {
      errors.push_back(
          Required(path + ".resources", "resource rules must supply at least one resource"));
    }
  }
}

void CheckSubject(api::Value subject, bool namespaced, const std::string& path,
                  api::FieldErrors& errors) {
  const std::string_view kind = subject["kind"].str();
  const std::string_view group = subject["apiGroup"].str();
  if (subject["name"].str().empty()) errors.push_back(Required(path + ".name"));
  if (kind == "ServiceAccount") {
    if (!subject["name"].str().empty()) {
      AddProblems(errors, path + ".name", subject["name"].str(),
                  SubdomainNameProblems(subject["name"].str(), false));
    }
    if (!group.empty()) errors.push_back(NotSupported(path + ".apiGroup", group, {""}));
    if (!namespaced && subject["namespace"].str().empty()) {
      errors.push_back(Required(path + ".namespace"));
    }
  } else if (kind == "User" || kind == "Group") {
    if (group != kGroup) errors.push_back(NotSupported(path + ".apiGroup", group, {kGroup}));
  } else {
    errors.push_back(NotSupported(path + ".kind", kind, {"ServiceAccount", "User", "Group"}));
  }
}

void CheckBinding(api::Value object, api::FieldErrors& errors) {
  const bool namespaced = object["kind"].str() == "RoleBinding";
  const api::Value role = object["roleRef"];
  if (role["apiGroup"].str() != kGroup) {
    errors.push_back(NotSupported("roleRef.apiGroup", role["apiGroup"].str(), {kGroup}));
  }
  const std::string_view kind = role["kind"].str();
  if (kind != "ClusterRole" && !(namespaced && kind == "Role")) {
    errors.push_back(NotSupported("roleRef.kind", kind,
                                  namespaced ? std::vector<std::string_view>{"Role", "ClusterRole"}
                                             : std::vector<std::string_view>{"ClusterRole"}));
  }
  if (role["name"].str().empty()) {
    errors.push_back(Required("roleRef.name"));
  } else {
    AddProblems(errors, "roleRef.name", role["name"].str(),
                PathSegmentProblems(role["name"].str(), false));
  }
  std::size_t index = 0;
  for (const api::Value subject : object["subjects"].elements()) {
    CheckSubject(subject, namespaced, StrCat("subjects[", index++, "]"), errors);
  }
}

}  // namespace

void RbacStrategy::Default(api::Draft& object, const StrategyContext&) const {
  if (api::Draft* role = object.Find("roleRef"); role != nullptr && role->is_object()) {
    if ((*role)["apiGroup"].str().empty()) {
      *role = api::Draft({{"apiGroup", kGroup},
                          {"kind", std::string((*role)["kind"].str())},
                          {"name", std::string((*role)["name"].str())}});
    }
  }
  api::Draft* subjects = object.Find("subjects");
  if (subjects == nullptr || !subjects->is_array()) return;
  for (api::Draft& subject : subjects->MutableElements()) {
    if (!subject.is_object() || !subject["apiGroup"].str().empty()) continue;
    const std::string_view kind = subject["kind"].str();
    if (kind == "User" || kind == "Group") subject["apiGroup"] = kGroup;
  }
}

api::FieldErrors RbacStrategy::Validate(api::Value object, const StrategyContext&) const {
  api::FieldErrors errors;
  IsBinding(object) ? CheckBinding(object, errors) : CheckRules(object, errors);
  return errors;
}

api::FieldErrors RbacStrategy::ValidateUpdate(api::Value object, api::Value before,
                                              std::string_view,
                                              const StrategyContext& context) const {
  api::FieldErrors errors = Validate(object, context);
  // The subjects of a binding may change but its role may not. Otherwise permission to edit a
  // binding would amount to permission to grant any role.
  if (IsBinding(object) && !api::Equal(object["roleRef"], before["roleRef"])) {
    errors.push_back(Invalid("roleRef", object["roleRef"], "cannot change roleRef"));
  }
  return errors;
}

api::Problems RbacStrategy::CheckName(const api::KindSchema&, std::string_view name,
                                      bool prefix) const {
  api::Problems problems = PathSegmentProblems(name, prefix);
  // Kubernetes accepts these, but terminals and logs interpret them.
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(name, is_control)) {
    problems.push_back("may not contain control characters");
  }
  return problems;
}

}  // namespace drakkar::apiserver
