#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/meta/label_selector.h"
#include "api/meta/object.h"
#include "base/result/result.h"

namespace drakkar::scheduler {

// One of a pod's required affinity or anti-affinity terms: which other pods must, or must not, run
// in the same domain, which is the value of a node label.
struct AffinityTerm {
  std::string topology_key;
  api::LabelSelector selector = api::LabelSelector::Nothing();
  bool in_any_namespace = false;
  std::vector<std::string> namespaces;  // unless in_any_namespace

  bool Matches(const api::Object& pod) const;
};

// The required terms of `kind` ("podAffinity", "podAntiAffinity") in the pod's spec. A term with a
// selector that cannot be read matches nothing. The scheduler does not know the labels of
// namespaces: a namespaceSelector with requirements counts as one without.
std::vector<AffinityTerm> ReadRequiredTerms(const api::Object& pod, api::FieldName kind);

// The holder's labelSelector, extended by the pod's own value for each key in matchLabelKeys and
// mismatchLabelKeys.
Result<api::LabelSelector> SelectorWithOwnLabels(api::Value holder, api::Value pod_labels);

}  // namespace drakkar::scheduler
