#pragma once

#include <functional>

#include "api/tree/value.h"
#include "apiserver/validation/findings.h"

// metadata of any object, as Kubernetes checks it.
namespace drakkar::apiserver {

struct MetadataRules {
  bool namespaced = false;
  // What is wrong with a name; `prefix`: the start of one that is generated.
  std::function<api::Problems(std::string_view name, bool prefix)> check_name;
  // Names whose hand-written rule has the declared one's wording (DeviceClass): whichever pass
  // speaks, the error is the same. generateName is not looked at.
  bool name_is_declared = false;
  // Finalizers without a domain must be known ones. The checks that all kinds go through leave that
  // to the kind.
  bool known_finalizers = true;
};

Findings CheckMetadata(api::Value object, const MetadataRules& rules);
Findings CheckMetadataUpdate(api::Value object, api::Value before, bool known_finalizers = true);

// What every kind's names must be at least: one segment of a path.
api::Problems PathSegmentProblems(std::string_view name, bool prefix);
// DNS subdomain, the default of resource.k8s.io.
api::Problems SubdomainNameProblems(std::string_view name, bool prefix);

// DNS label, for namespaces.
api::Problems LabelNameProblems(std::string_view name, bool prefix);
// DNS label that starts with a letter, for services.
api::Problems Dns1035NameProblems(std::string_view name, bool prefix);

// The name of a manager of fields, in an option or in an entry.
inline constexpr std::size_t kMaxManagerBytes = 128;
void CheckManager(Findings& out, const api::FieldPath& path, std::string_view manager);

void CheckLabels(Findings& out, const api::FieldPath& path, api::Value labels);
void CheckAnnotations(Findings& out, const api::FieldPath& path, api::Value annotations);

}  // namespace drakkar::apiserver
