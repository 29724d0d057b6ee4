#include "apiserver/registry/label_keys.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;

// Calls `visit` with each element of the list, if there is one.
template <typename Visit>
void ForEach(Draft* object, api::FieldName list, Visit visit) {
  if (object == nullptr || !object->is_object()) return;
  Draft* elements = object->Find(list);
  if (elements == nullptr || !elements->is_array()) return;
  for (Draft& each : elements->MutableElements()) visit(each);
}

void Merge(Draft* term, Draft* labels) {
  if (term == nullptr || !term->is_object()) return;
  Draft* selector = term->Find("labelSelector");
  if (selector == nullptr || !selector->is_object()) return;
  const auto add = [&](api::FieldName list, std::string_view op) {
    ForEach(term, list, [&](Draft& key) {
      const Draft* value = labels->FindEntry(key.str());
      if (value == nullptr) return;
      Draft requirement{{"key", std::string(key.str())}, {"operator", op}};
      requirement["values"].Append(std::string(value->str()));
      (*selector)["matchExpressions"].Append(std::move(requirement));
    });
  };
  add("matchLabelKeys", "In");
  add("mismatchLabelKeys", "NotIn");
}

}  // namespace

void MergeLabelKeys(Draft& pod) {
  Draft* spec = pod.Find("spec");
  Draft* metadata = pod.Find("metadata");
  if (spec == nullptr || !spec->is_object() || metadata == nullptr) return;
  Draft* labels = metadata->Find("labels");
  if (labels == nullptr || !labels->is_object()) return;
  ForEach(spec, "topologySpreadConstraints",
          [&](Draft& constraint) { Merge(&constraint, labels); });
  Draft* affinity = spec->Find("affinity");
  if (affinity == nullptr || !affinity->is_object()) return;
  for (const api::FieldName group : api::FieldNames{"podAffinity", "podAntiAffinity"}) {
    Draft* terms = affinity->Find(group);
    ForEach(terms, "requiredDuringSchedulingIgnoredDuringExecution",
            [&](Draft& term) { Merge(&term, labels); });
    ForEach(terms, "preferredDuringSchedulingIgnoredDuringExecution",
            [&](Draft& each) { Merge(each.Find("podAffinityTerm"), labels); });
  }
}

}  // namespace drakkar::apiserver
