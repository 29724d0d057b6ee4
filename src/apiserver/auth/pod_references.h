#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/meta/object.h"

namespace drakkar::apiserver {

// What the pods of each node reference: the secrets, config maps, claims and service accounts that
// a node may read because a pod bound to it references them. Updated pod by pod.
class PodReferences {
 public:
  void Add(const api::Object& pod);
  void Remove(const api::Object& pod);
  void Clear() { nodes_.clear(); }

  // `resource` is a plural: "secrets", "configmaps", "persistentvolumeclaims", "resourceclaims",
  // "serviceaccounts", "pods".
  bool Has(std::string_view node, std::string_view resource, std::string_view namespace_,
           std::string_view name) const;

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  // "secrets/default/s" to the number of pods that reference it.
  using Counts = std::unordered_map<std::string, int, TextHash, std::equal_to<>>;
  std::unordered_map<std::string, Counts, TextHash, std::equal_to<>> nodes_;
};

// The keys of everything that a pod references, "secrets/default/s" and so on, each once.
std::vector<std::string> ReferencesOf(const api::Object& pod);

}  // namespace drakkar::apiserver
