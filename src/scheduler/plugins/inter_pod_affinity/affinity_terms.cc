#include "scheduler/plugins/inter_pod_affinity/affinity_terms.h"

#include "base/text/text.h"

namespace drakkar::scheduler {

using api::Value;

namespace {

constexpr api::FieldName kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr api::FieldName kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

std::string TextOf(const api::LabelSelector& selector) {
  return selector.matches_nothing() ? "!" : selector.ToString();
}

Result<AffinityTerm> ReadTerm(Value value, std::string_view pod_namespace) {
  AffinityTerm term;
  term.topology_key = value["topologyKey"].str();
  ASSIGN_OR_RETURN(term.selector, api::LabelSelector::FromObject(value["labelSelector"]));
  for (const Value ns : value["namespaces"].elements()) term.namespaces.emplace(ns.str());
  const Value selector = value["namespaceSelector"];
  ASSIGN_OR_RETURN(term.namespace_selector, api::LabelSelector::FromObject(selector));
  if (term.namespaces.empty() && !selector.has_value()) term.namespaces.emplace(pod_namespace);
  return term;
}

Result<void> ReadGroup(Value group, std::string_view pod_namespace, std::int64_t sign,
                       std::vector<AffinityTerm>& required,
                       std::vector<AffinityTerms::Preferred>& preferred) {
  for (const Value each : group[kRequired].elements()) {
    ASSIGN_OR_RETURN(AffinityTerm term, ReadTerm(each, pod_namespace));
    required.push_back(std::move(term));
  }
  for (const Value each : group[kPreferred].elements()) {
    ASSIGN_OR_RETURN(AffinityTerm term, ReadTerm(each["podAffinityTerm"], pod_namespace));
    preferred.push_back({std::move(term), sign * each["weight"].integer()});
  }
  return Ok();
}

}  // namespace

bool AffinityTerm::Matches(const api::Object& pod, const NamespaceLabels& all) const {
  return selector.Matches(pod.root()["metadata"]["labels"]) &&
         (namespaces.contains(pod.namespace_()) ||
          (!namespace_selector.matches_nothing() &&
           all.Matches(namespace_selector, pod.namespace_())));
}

std::string AffinityTerm::Text() const {
  return StrCat(topology_key, "\n", TextOf(selector), "\n", TextOf(namespace_selector), "\n",
                Join(std::vector<std::string>(namespaces.begin(), namespaces.end()), ","));
}

Result<AffinityTerms> ReadAffinityTerms(const PodInfo& pod) {
  AffinityTerms terms;
  if (!pod.has_pod_affinity) return terms;
  const Value affinity = pod.spec()["affinity"];
  std::size_t count = 0;
  for (const api::FieldName group : api::FieldNames{"podAffinity", "podAntiAffinity"}) {
    count += affinity[group][kRequired].size() + affinity[group][kPreferred].size();
  }
  if (count > kMaxAffinityTerms) {
    return InvalidArgument(StrCat("the pod has ", count, " terms; at most ", kMaxAffinityTerms,
                                  " are supported by this scheduler"));
  }
  RETURN_IF_ERROR(ReadGroup(affinity["podAffinity"], pod.ns(), 1, terms.affinity, terms.preferred));
  RETURN_IF_ERROR(
      ReadGroup(affinity["podAntiAffinity"], pod.ns(), -1, terms.anti_affinity, terms.preferred));
  return terms;
}

}  // namespace drakkar::scheduler
