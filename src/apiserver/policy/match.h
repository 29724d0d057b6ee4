#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/label_selector.h"
#include "api/meta/object.h"
#include "apiserver/request/request.h"

// The requests that an admission policy or webhook applies to.
namespace drakkar::apiserver {

// "CREATE", "UPDATE" or "DELETE"; `object` is absent for a deletion, `before` for a creation.
std::string_view AdmissionOperation(api::Value object, api::Value before);

// A rule of matchConstraints or of a webhook.
struct AdmissionRule {
  explicit AdmissionRule(api::Value rule);

  std::vector<std::string> operations;
  std::vector<std::string> groups;
  std::vector<std::string> versions;
  std::vector<std::string> resources;  // "pods", "pods/status", "*/scale", "*/*"
  std::vector<std::string> names;      // empty: all
  std::string scope;

  // Whether any request for the kind, in this version of it, can match.
  bool ConcernsKind(const api::KindSchema& kind) const;
  bool Matches(const api::KindSchema& kind, std::string_view operation,
               std::string_view subresource, std::string_view name) const;
};

// The parts of a request that selectors and rules examine.
struct AdmissionSubject {
  const Request& request;
  std::string_view operation;
  api::Value object;  // absent for a deletion
  api::Value before;  // absent for a creation
  std::function<api::ObjectPtr(const std::string& namespace_)> find_namespace;
};

// matchConstraints, matchResources, or the same fields of a webhook.
class AdmissionMatch {
 public:
  AdmissionMatch() = default;  // everything
  // `rules` are resourceRules or a webhook's rules.
  AdmissionMatch(api::Value match, api::Value rules, api::Value excluded);

  // The kind, in the version to show to the policy, if the request matches. An error is a selector
  // that cannot be evaluated.
  struct Outcome {
    const api::KindSchema* kind = nullptr;  // null: no match
    std::string error;
  };
  Outcome Match(const AdmissionSubject& subject) const;
  // Whether some request for the kind can match.
  bool ConcernsKind(const api::KindSchema& kind) const;
  const std::vector<AdmissionRule>& rules() const { return rules_; }

 private:
  const api::KindSchema* FindRule(const std::vector<AdmissionRule>& rules,
                                  const AdmissionSubject& subject) const;

  std::vector<AdmissionRule> rules_;
  std::vector<AdmissionRule> excluded_;
  bool equivalent_ = true;
  std::optional<api::LabelSelector> namespaces_;  // empty: all
  std::optional<api::LabelSelector> objects_;
  std::string selector_error_;
};

// The kind in all its served versions, including groups that share its storage; itself first. A
// kind that a webhook converts has only itself.
std::vector<const api::KindSchema*> EquivalentKinds(const api::KindSchema& kind);

}  // namespace drakkar::apiserver
