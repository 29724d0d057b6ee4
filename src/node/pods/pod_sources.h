#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/meta/object.h"
#include "base/env/clock.h"
#include "client/client.h"

namespace drakkar::node {

// The ConfigMaps and Secrets that a pod's environment and volumes refer to, at the time of the
// fetch.
struct PodSources {
  // By audience and lifetime. Tokens are bound to the pod and expire with it.
  struct Token {
    std::string text;
    WallTime renew_at{};
  };
  using Tokens = std::map<std::pair<std::string, std::int64_t>, Token>;
  Tokens tokens;

  // Null: no such object exists.
  std::map<std::string, api::ObjectPtr> config_maps;
  std::map<std::string, api::ObjectPtr> secrets;

  // One key, decoded. If the object or key is missing: nothing if `optional`, otherwise kNotFound.
  Result<std::optional<std::string>> ConfigMapKey(const std::string& name, const std::string& key,
                                                  bool optional) const;
  Result<std::optional<std::string>> SecretKey(const std::string& name, const std::string& key,
                                               bool optional) const;
  // All keys, decoded; empty if the object is missing and `optional`.
  Result<std::map<std::string, std::string>> ConfigMapData(const std::string& name,
                                                           bool optional) const;
  Result<std::map<std::string, std::string>> SecretData(const std::string& name,
                                                        bool optional) const;
};

// What the pod already has.
struct KnownSources {
  const PodSources::Tokens& tokens;  // renewed after 80 % of their lifetime, or after a day
  WallTime now{};
};

// What the sources are for. Every pod has a token volume, but few environments need a source, so
// most containers start without a round trip.
enum class SourceUse { kVolumes, kEnvironment, kImages };

// Fetches all sources. A missing object is no failure here: the place that uses it decides whether
// it is required. `done` runs once; it runs inside the call only if nothing has to be fetched.
void FetchPodSources(client::Client& client, const api::ObjectPtr& pod, SourceUse use,
                     const KnownSources& known, std::function<void(Result<PodSources>)> done);
// Whether there is anything to fetch.
bool NeedsSources(api::Value pod, SourceUse use);
// Whether any volume has content that may change.
bool HasChangingVolumes(api::Value pod);
// The key of a token: the requested audience and lifetime, with defaults applied.
std::pair<std::string, std::int64_t> TokenKey(api::Value source);

}  // namespace drakkar::node
