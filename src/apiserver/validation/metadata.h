#pragma once

#include <functional>

#include "api/tree/value.h"
#include "apiserver/validation/findings.h"

// Validates the metadata of any object as Kubernetes does.
namespace drakkar::apiserver {

struct MetadataRules {
  bool namespaced = false;
  // Checks a name; with `prefix`, the beginning of a generated one.
  std::function<api::Problems(std::string_view name, bool prefix)> check_name;
  // The hand-written and the declared rule for names have the same wording (DeviceClass), so the
  // error is the same in both passes. generateName is not checked.
  bool name_is_declared = false;
  // Finalizers without a domain must be known ones. The generic checks leave that to the kind.
  bool known_finalizers = true;
};

Findings CheckMetadata(api::Value object, const MetadataRules& rules);
Findings CheckMetadataUpdate(api::Value object, api::Value before, bool known_finalizers = true);

// The minimum for names of every kind: a path segment.
api::Problems PathSegmentProblems(std::string_view name, bool prefix);
// A DNS subdomain, the default of resource.k8s.io.
api::Problems SubdomainNameProblems(std::string_view name, bool prefix);

// A DNS label, for namespaces.
api::Problems LabelNameProblems(std::string_view name, bool prefix);
// DNS label that starts with a letter, for services.
api::Problems Dns1035NameProblems(std::string_view name, bool prefix);

// The name of a field manager, in an option or in an entry.
inline constexpr std::size_t kMaxManagerBytes = 128;
void CheckManager(Findings& out, const api::FieldPath& path, std::string_view manager);

void CheckLabels(Findings& out, const api::FieldPath& path, api::Value labels);
void CheckAnnotations(Findings& out, const api::FieldPath& path, api::Value annotations);

}  // namespace drakkar::apiserver
