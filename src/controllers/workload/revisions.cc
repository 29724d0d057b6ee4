#include "controllers/workload/revisions.h"

#include <algorithm>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/workload/adoption.h"
#include "controllers/workload/pod_from_template.h"

namespace drakkar::controllers {

namespace {

using api::Value;

constexpr std::size_t kMaxName = 253;

// A strategic merge patch that restores the template, byte for byte as kube-controller-manager
// writes it: it compares revisions as text, and a difference would make it restart every pod.
std::string RestoringPatch(Value pod_template) {
  api::Draft patch = api::Draft::Object();
  api::Draft& copy = patch["spec"]["template"];
  copy = api::Draft(pod_template);
  copy.Entry("$patch") = "replace";
  return api::WriteJson(patch.Freeze()->root(), {.sort_members = true});
}

// Equal, except that null counts as absent.
bool EqualButNulls(Value a, Value b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() == b.has_value();
  if (a.is_object() && b.is_object()) {
    std::size_t values = 0;
    for (const auto& [key, name, value] : a.members()) {
      if (!value.has_value()) continue;
      ++values;
      if (!EqualButNulls(value, b.Entry(name))) return false;
    }
    for (const auto& [key, name, value] : b.members()) {
      if (value.has_value() && values-- == 0) return false;
    }
    return values == 0;
  }
  if (a.is_array() && b.is_array()) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!EqualButNulls(a.at(i), b.at(i))) return false;
    }
    return true;
  }
  return api::Equal(a, b);
}

std::int64_t NumberOf(const api::Object& revision) {
  return revision["revision"].integer();
}

// Lowest number first; then oldest, then by name.
bool IsLower(const api::ObjectPtr& a, const api::ObjectPtr& b) {
  if (NumberOf(*a) != NumberOf(*b)) return NumberOf(*a) < NumberOf(*b);
  const std::string_view x = (*a)["metadata"]["creationTimestamp"].str();
  const std::string_view y = (*b)["metadata"]["creationTimestamp"].str();
  return x != y ? x < y : a->name() < b->name();
}

api::TreePtr NewRevision(const RevisionRequest& request, const std::string& patch,
                         std::int64_t number, std::string& name) {
  const api::Object& owner = request.owner;
  const Value pod_template = owner["spec"]["template"];
  const std::string hash = TemplateHash(pod_template, request.collisions);
  name = StrCat(owner.name().substr(0, kMaxName - 1 - hash.size()), "-", hash);
  api::Draft revision = api::Draft::Object();
  revision.KeepAlive(owner.tree());
  api::Draft& metadata = revision["metadata"];
  metadata["name"] = name;
  metadata["namespace"] = owner.namespace_();
  metadata["labels"] = api::Draft(pod_template["metadata"]["labels"]);
  metadata["labels"].Entry(request.hash_label) = hash;
  if (!owner["metadata"]["annotations"].empty()) {
    metadata["annotations"] = api::Draft(owner["metadata"]["annotations"]);
  }
  metadata["ownerReferences"].Append(ControllerReference(owner, request.owner_kind));
  revision["data"] = api::Draft::Raw(patch);
  revision["revision"] = number;
  return revision.Freeze();
}

}  // namespace

api::TreePtr TemplateOf(const api::Object& revision) {
  const Result<api::TreePtr> data =
      api::ParseJson(revision["data"].str(), {.refuse_duplicates = false});
  if (!data.ok()) return api::Draft().Freeze();
  api::Draft pod_template((*data)->root()["spec"]["template"]);
  if (pod_template.is_object()) pod_template.RemoveEntry("$patch");
  return pod_template.Freeze();
}

bool IsRevisionOf(const api::Object& revision, Value pod_template) {
  return EqualButNulls(TemplateOf(revision)->root(), pod_template);
}

RevisionPlan PlanRevision(const RevisionRequest& request) {
  const Value pod_template = request.owner["spec"]["template"];
  const std::string patch = RestoringPatch(pod_template);
  RevisionPlan plan;
  std::int64_t highest_other = 0;
  for (const api::ObjectPtr& revision : request.revisions) {
    const bool same = (*revision)["data"].str() == patch || IsRevisionOf(*revision, pod_template);
    if (!same) {
      highest_other = std::max(highest_other, NumberOf(*revision));
    } else if (plan.current == nullptr || IsLower(plan.current, revision)) {
      plan.current = revision;
    }
  }
  if (plan.current == nullptr) {
    plan.write = NewRevision(request, patch, highest_other + 1, plan.name);
    return plan;
  }
  plan.name = plan.current->name();
  if (NumberOf(*plan.current) <= highest_other) {
    api::Draft renumbered(plan.current->tree());
    renumbered["revision"] = highest_other + 1;
    plan.write = renumbered.Freeze();
  }
  return plan;
}

std::vector<api::ObjectPtr> SurplusRevisions(
    std::vector<api::ObjectPtr> revisions, std::int64_t limit,
    const std::function<bool(const api::Object&)>& in_use) {
  if (limit < 0) return {};
  std::erase_if(revisions, [&](const api::ObjectPtr& each) { return in_use(*each); });
  if (revisions.size() <= static_cast<std::size_t>(limit)) return {};
  std::ranges::sort(revisions, IsLower);
  revisions.resize(revisions.size() - static_cast<std::size_t>(limit));
  return revisions;
}

}  // namespace drakkar::controllers
