#include "apiserver/policy/match.h"

#include <algorithm>

#include "api/scheme/scheme.h"
#include "apiserver/custom/definition.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

std::vector<std::string> Texts(api::Value list) {
  std::vector<std::string> texts;
  for (api::Value each : list.elements()) texts.emplace_back(each.str());
  return texts;
}

bool HasOrAll(const std::vector<std::string>& list, std::string_view wanted) {
  return std::ranges::any_of(
      list, [&](const std::string& each) { return each == "*" || each == wanted; });
}

bool IsNamespaceKind(const api::KindSchema& kind) {
  return kind.group.empty() && kind.kind == "Namespace";
}

}  // namespace

std::string_view AdmissionOperation(api::Value object, api::Value before) {
  if (!object.has_value()) return "DELETE";
  return before.has_value() ? "UPDATE" : "CREATE";
}

AdmissionRule::AdmissionRule(api::Value rule)
    : operations(Texts(rule["operations"])),
      groups(Texts(rule["apiGroups"])),
      versions(Texts(rule["apiVersions"])),
      resources(Texts(rule["resources"])),
      names(Texts(rule["resourceNames"])),
      scope(rule["scope"].str("*")) {}

bool AdmissionRule::ConcernsKind(const api::KindSchema& kind) const {
  if (!HasOrAll(groups, kind.group) || !HasOrAll(versions, kind.version)) return false;
  if (scope == "Namespaced" && !kind.namespaced) return false;
  if (scope == "Cluster" && kind.namespaced) return false;
  return std::ranges::any_of(resources, [&](std::string_view each) {
    const std::string_view resource = each.substr(0, each.find('/'));
    return resource == "*" || resource == kind.plural;
  });
}

bool AdmissionRule::Matches(const api::KindSchema& kind, std::string_view operation,
                            std::string_view subresource, std::string_view name) const {
  if (!HasOrAll(operations, operation) || !ConcernsKind(kind)) return false;
  if (!names.empty() && std::ranges::find(names, name) == names.end()) return false;
  return std::ranges::any_of(resources, [&](std::string_view each) {
    const std::size_t slash = each.find('/');
    const std::string_view resource = each.substr(0, slash);
    const std::string_view below =
        slash == std::string_view::npos ? std::string_view() : each.substr(slash + 1);
    return (resource == "*" || resource == kind.plural) && (below == "*" || below == subresource);
  });
}

std::vector<const api::KindSchema*> EquivalentKinds(const api::KindSchema& kind) {
  std::vector<const api::KindSchema*> kinds = {&kind};
  // Matching must not call a webhook.
  if (IsConvertedByWebhook(kind)) return kinds;
  if (kind.family != nullptr) {
    for (const api::KindSchema* each : kind.family->versions) {
      if (each != &kind) kinds.push_back(each);
    }
    return kinds;
  }
  for (const api::KindSchema& each : api::AllKinds()) {
    if (&each != &kind && each.storage != nullptr && each.storage == kind.storage) {
      kinds.push_back(&each);
    }
  }
  return kinds;
}

AdmissionMatch::AdmissionMatch(api::Value match, api::Value rules, api::Value excluded)
    : equivalent_(match["matchPolicy"].str("Equivalent") != "Exact") {
  for (api::Value rule : rules.elements()) rules_.emplace_back(rule);
  for (api::Value rule : excluded.elements()) excluded_.emplace_back(rule);
  const auto read = [&](api::Value selector, std::optional<api::LabelSelector>& into) {
    if (!selector.has_value() || selector.empty()) return;
    Result<api::LabelSelector> parsed = api::LabelSelector::FromObject(selector);
    if (!parsed.ok()) {
      selector_error_ = parsed.error().message;
    } else if (!parsed->empty()) {
      into = *std::move(parsed);
    }
  };
  read(match["namespaceSelector"], namespaces_);
  read(match["objectSelector"], objects_);
}

const api::KindSchema* AdmissionMatch::FindRule(const std::vector<AdmissionRule>& rules,
                                                const AdmissionSubject& subject) const {
  const Request& request = subject.request;
  for (const AdmissionRule& rule : rules) {
    if (rule.Matches(*request.kind, subject.operation, request.subresource, request.name)) {
      return request.kind;
    }
  }
  if (!equivalent_) return nullptr;
  const std::vector<const api::KindSchema*> kinds = EquivalentKinds(*request.kind);
  for (const AdmissionRule& rule : rules) {
    for (std::size_t i = 1; i < kinds.size(); ++i) {
      if (rule.Matches(*kinds[i], subject.operation, request.subresource, request.name)) {
        return kinds[i];
      }
    }
  }
  return nullptr;
}

AdmissionMatch::Outcome AdmissionMatch::Match(const AdmissionSubject& subject) const {
  const Request& request = subject.request;
  std::string error = selector_error_;
  if (namespaces_ && (request.kind->namespaced || IsNamespaceKind(*request.kind))) {
    api::Value labels;
    api::ObjectPtr home;
    if (IsNamespaceKind(*request.kind)) {
      const api::Value self = subject.object.has_value() ? subject.object : subject.before;
      labels = self["metadata"]["labels"];
    } else {
      home = subject.find_namespace(request.namespace_);
      if (home == nullptr) {
        error = StrCat("namespaces ", Quote(request.namespace_), " not found");
      } else {
        labels = home->root()["metadata"]["labels"];
      }
    }
    if (error.empty() && !namespaces_->Matches(labels)) return {};
  }
  if (objects_ && error.empty() &&
      !(subject.object.has_value() && objects_->Matches(subject.object["metadata"]["labels"])) &&
      !(subject.before.has_value() && objects_->Matches(subject.before["metadata"]["labels"]))) {
    return {};
  }
  if (FindRule(excluded_, subject) != nullptr) return {};
  const api::KindSchema* kind = rules_.empty() ? request.kind : FindRule(rules_, subject);
  if (kind == nullptr) return {};
  return {.kind = kind, .error = std::move(error)};
}

bool AdmissionMatch::ConcernsKind(const api::KindSchema& kind) const {
  if (rules_.empty()) return true;
  const std::vector<const api::KindSchema*> kinds = EquivalentKinds(kind);
  for (const AdmissionRule& rule : rules_) {
    for (const api::KindSchema* each : kinds) {
      if (rule.ConcernsKind(*each)) return true;
      if (!equivalent_) break;
    }
  }
  return false;
}

}  // namespace drakkar::apiserver
