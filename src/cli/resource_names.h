#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result/result.h"

namespace drakkar::api {
struct KindSchema;
}

namespace drakkar::cli {

// Kinds that a server serves besides those of our schema, in the order of its preference.
using ForeignKinds = std::span<const api::KindSchema* const>;

// Resolves "pods", "pod", "po", "Pod", "resourceclaims.resource.k8s.io", "pods.v1." and so on.
// Without a version, returns the one that servers prefer. Our own kinds come before `foreign` ones.
Result<const api::KindSchema*> FindType(std::string_view word, ForeignKinds foreign = {});
// Resolves "pods,nodes", "all": comma-separated types and categories.
Result<std::vector<const api::KindSchema*>> FindTypes(std::string_view word,
                                                      ForeignKinds foreign = {});
// All type names, plurals first; for completion.
std::vector<std::string> AllTypeNames();

struct NamedResource {
  const api::KindSchema* kind = nullptr;
  std::string name;
};

// The objects that a command's arguments select: whole collections (`names_given` is false), or
// named objects.
struct ResourceSelection {
  std::vector<const api::KindSchema*> kinds;
  std::vector<NamedResource> items;
  bool names_given = false;
};

// Parses `TYPE[,TYPE...] [NAME...]` or `TYPE/NAME ...`.
Result<ResourceSelection> ParseSelection(const std::vector<std::string>& words,
                                         ForeignKinds foreign = {});

// "pod", "resourceclaim.resource.k8s.io": the type, for messages about one object.
std::string SingularName(const api::KindSchema& kind);
// "pods", "resourceclaims.resource.k8s.io".
std::string PluralName(const api::KindSchema& kind);
// "pod/x"
std::string ObjectName(const api::KindSchema& kind, std::string_view name);

}  // namespace drakkar::cli
