#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result/result.h"

namespace drakkar::api {
struct KindSchema;
}

namespace drakkar::cli {

// "pods", "pod", "po", "Pod", "resourceclaims.resource.k8s.io", "pods.v1." and the like. Without a
// version the one that a server prefers.
Result<const api::KindSchema*> FindType(std::string_view word);
// "pods,nodes", "all": types with a comma between them, and categories.
Result<std::vector<const api::KindSchema*>> FindTypes(std::string_view word);
// Every word that names a type: plurals first, for completion.
std::vector<std::string> AllTypeNames();

struct NamedResource {
  const api::KindSchema* kind = nullptr;
  std::string name;
};

// What the words after a command name: whole collections (`names_given` false), or objects.
struct ResourceSelection {
  std::vector<const api::KindSchema*> kinds;
  std::vector<NamedResource> items;
  bool names_given = false;
};

// `TYPE[,TYPE...] [NAME...]` or `TYPE/NAME ...`.
Result<ResourceSelection> ParseSelection(const std::vector<std::string>& words);

// "pod", "resourceclaim.resource.k8s.io": the type in messages about one object.
std::string SingularName(const api::KindSchema& kind);
// "pods", "resourceclaims.resource.k8s.io".
std::string PluralName(const api::KindSchema& kind);
// "pod/x"
std::string ObjectName(const api::KindSchema& kind, std::string_view name);

}  // namespace drakkar::cli
