#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/meta/object.h"
#include "client/client.h"

namespace drakkar::node {

// The ConfigMaps and Secrets a pod's environment and volumes refer to, as they were when fetched.
struct PodSources {
  // Null: there is none of that name.
  std::map<std::string, api::ObjectPtr> config_maps;
  std::map<std::string, api::ObjectPtr> secrets;

  // One key, decoded. Nothing if object or key is missing and `optional`; kNotFound if not.
  Result<std::optional<std::string>> ConfigMapKey(const std::string& name, const std::string& key,
                                                  bool optional) const;
  Result<std::optional<std::string>> SecretKey(const std::string& name, const std::string& key,
                                               bool optional) const;
  // All keys, decoded; empty if the object is missing and `optional`.
  Result<std::map<std::string, std::string>> ConfigMapData(const std::string& name,
                                                           bool optional) const;
  Result<std::map<std::string, std::string>> SecretData(const std::string& name, bool optional) const;
};

// Reads them all. Objects that do not exist are no failure here: whether one is needed is decided
// where it is used. `done` runs once, never inside the call; not at all once `alive` is gone.
void FetchPodSources(client::Client& client, const api::ObjectPtr& pod, std::weak_ptr<int> alive,
                     std::function<void(Result<PodSources>)> done);
// Whether there is anything to fetch.
bool NeedsSources(api::Value pod);

}  // namespace drakkar::node
